//! `strftime_now`: the local time of a given moment through the C library, as Python does it.

use std::ffi::{c_char, CString};

use minijinja::Error;

use super::raise;

/// Directives that C's strftime does not know: `%f` are the microseconds of a clock that counts seconds.
fn own_directives(format: &str) -> String {
    let mut out = String::with_capacity(format.len());
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        out.push(c);
        if c == '%' {
            match chars.next() {
                Some('f') => {
                    out.pop();
                    out.push_str("000000");
                }
                // A datetime without a zone prints nothing for these.
                Some('z' | 'Z') => {
                    out.pop();
                }
                Some(other) => out.push(other),
                None => {}
            }
        }
    }
    out
}

const MAX_TEXT: usize = 64 * 1024;

pub fn strftime(now: i64, format: &str) -> Result<String, Error> {
    let Ok(c_format) = CString::new(own_directives(format)) else { return raise("strftime_now: embedded null character") };
    if c_format.is_empty() {
        return Ok(String::new());
    }
    let seconds = now as libc::time_t;
    let mut buffer = vec![0u8; 256];
    loop {
        // SAFETY: plain C calls on buffers that live here; `localtime_r` is the thread-safe form.
        let written = unsafe {
            let mut parts: libc::tm = std::mem::zeroed();
            if libc::localtime_r(&seconds, &mut parts).is_null() {
                return raise("strftime_now: the clock is out of range");
            }
            libc::strftime(buffer.as_mut_ptr() as *mut c_char, buffer.len(), c_format.as_ptr(), &parts)
        };
        // Zero means "did not fit" or "is empty": a buffer much longer than the format settles it.
        if written > 0 || buffer.len() > MAX_TEXT.max(256 * format.len()) {
            return Ok(String::from_utf8_lossy(&buffer[..written]).into_owned());
        }
        buffer.resize(buffer.len() * 4, 0);
    }
}
