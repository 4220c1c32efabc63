# cmake --install: a relocatable folder (bin/, lib/) that needs nothing built on the machine it is copied to.
