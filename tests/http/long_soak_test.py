"""soak_test.py for ten minutes, or as long as GODWIT_SOAK_SECONDS says."""

import os
import unittest

os.environ.setdefault("GODWIT_SOAK_SECONDS", "600")

from soak_test import Soak  # noqa: E402,F401

if __name__ == "__main__":
    unittest.main()
