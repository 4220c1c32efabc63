//! What every C entry point shares: status codes, owned buffers, and the guard that turns errors and panics into both.

use std::any::Any;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    InvalidArgument = 1,
    Corrupt = 2,
    Internal = 3,
    Overloaded = 4,
}

/// Why a call failed: the status and the message that go over the border.
#[derive(Debug)]
pub struct Failure(pub Status, pub String);

impl Failure {
    pub fn invalid(message: impl Into<String>) -> Failure {
        Failure(Status::InvalidArgument, message.into())
    }
    pub fn corrupt(message: impl Into<String>) -> Failure {
        Failure(Status::Corrupt, message.into())
    }
}

#[repr(C)]
pub struct Bytes {
    data: *mut u8,
    size: usize,
}

#[repr(C)]
pub struct Ids {
    data: *mut u32,
    size: usize,
}

fn release<T>(values: Vec<T>) -> (*mut T, usize) {
    let size = values.len();
    (Box::into_raw(values.into_boxed_slice()) as *mut T, size)
}

impl From<String> for Bytes {
    fn from(text: String) -> Bytes {
        let (data, size) = release(text.into_bytes());
        Bytes { data, size }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        let (data, size) = release(bytes);
        Bytes { data, size }
    }
}

impl From<Vec<u32>> for Ids {
    fn from(ids: Vec<u32>) -> Ids {
        let (data, size) = release(ids);
        Ids { data, size }
    }
}

/// # Safety
/// `bytes` came from this library and is freed once.
#[no_mangle]
pub unsafe extern "C" fn godwit_bytes_free(bytes: Bytes) {
    if !bytes.data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(bytes.data, bytes.size)));
    }
}

/// # Safety
/// `ids` came from this library and is freed once.
#[no_mangle]
pub unsafe extern "C" fn godwit_ids_free(ids: Ids) {
    if !ids.data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(ids.data, ids.size)));
    }
}

pub fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| s.to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "panic without a message".into())
}

/// A library does not print: the message of a panic travels in the error. Every Rust thread of the process is ours.
pub fn silence_panics() {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| set_hook(Box::new(|_| {})));
}

/// Runs `body`; its failure or panic becomes the status and the owned message in `error`.
///
/// # Safety
/// `error` is null or valid for a write.
pub unsafe fn guard(error: *mut Bytes, body: impl FnOnce() -> Result<(), Failure>) -> Status {
    silence_panics();
    let outcome = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|payload| Err(Failure(Status::Internal, panic_message(payload))));
    match outcome {
        Ok(()) => Status::Ok,
        Err(Failure(status, message)) => {
            if !error.is_null() {
                error.write(message.into());
            }
            status
        }
    }
}

/// Bytes of the caller as a slice; a null pointer is the empty slice.
///
/// # Safety
/// `data` is null or valid for `size` elements while the result is used.
pub unsafe fn view<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if data.is_null() {
        &[]
    } else {
        std::slice::from_raw_parts(data, size)
    }
}

/// The same as text; a failure names the byte where UTF-8 ends.
///
/// # Safety
/// As `view`.
pub unsafe fn view_text<'a>(data: *const u8, size: usize) -> Result<&'a str, Failure> {
    std::str::from_utf8(view(data, size))
        .map_err(|e| Failure::invalid(format!("invalid UTF-8 at byte {}", e.valid_up_to())))
}
