//! Text to ids over the crate `tokenizers`.

use std::ffi::c_void;

use tokenizers::tokenizer::Tokenizer as HfTokenizer;

use crate::border::{guard, view, view_text, Bytes, Failure, Ids, Status};
use crate::json::bpe_from_json;
use crate::parts::{bpe_from_parts, MergeList, TextList};
use crate::pipeline::{text_of, OverModel, Pipeline};

pub struct Tokenizer(Box<dyn Pipeline>);

fn from_json(json: &[u8], general: bool) -> Result<Tokenizer, Failure> {
    if let Some(direct) = (!general).then(|| bpe_from_json(json)).flatten() {
        return Ok(Tokenizer(Box::new(direct?)));
    }
    let whole = HfTokenizer::from_bytes(json).map_err(|e| Failure::corrupt(text_of(e)))?;
    Ok(Tokenizer(Box::new(OverModel::new(whole.into_inner())?)))
}

/// # Safety
/// `json` is valid for `size` bytes; `out` and `error` are valid for a write.
#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_new(
    json: *const u8,
    size: usize,
    general: i32,
    out: *mut *mut Tokenizer,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        out.write(Box::into_raw(Box::new(from_json(view(json, size), general != 0)?)));
        Ok(())
    })
}

/// # Safety
/// `frame` is valid for `size` bytes, the lists for what they count; `out` and `error` are valid for a write.
#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_new_bpe(
    frame: *const u8,
    size: usize,
    tokens: *const TextList,
    merges: *const MergeList,
    out: *mut *mut Tokenizer,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        let built = bpe_from_parts(view(frame, size), &*tokens, &*merges)?;
        out.write(Box::into_raw(Box::new(Tokenizer(Box::new(built)))));
        Ok(())
    })
}

/// # Safety
/// `tokenizer` came from this file and is freed once.
#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_free(tokenizer: *mut Tokenizer) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

/// # Safety
/// All pointers are valid; `text` for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_encode(
    tokenizer: *const Tokenizer,
    text: *const u8,
    size: usize,
    flags: u32,
    ids: *mut Ids,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        let text = view_text(text, size)?;
        ids.write((*tokenizer).0.encode(text, flags)?.into());
        Ok(())
    })
}

type VisitToken = extern "C" fn(*mut c_void, u32, *const u8, usize, i32);

/// # Safety
/// All pointers are valid; `visit` does not unwind.
#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_visit(
    tokenizer: *const Tokenizer,
    visit: VisitToken,
    context: *mut c_void,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        (*tokenizer).0.visit(&mut |id, text, special| visit(context, id, text.as_ptr(), text.len(), special as i32));
        Ok(())
    })
}

/// # Safety
/// All pointers are valid; `ids` for `size` elements.
#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_decode(
    tokenizer: *const Tokenizer,
    ids: *const u32,
    size: usize,
    skip_special: i32,
    text: *mut Bytes,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        text.write((*tokenizer).0.decode(view(ids, size), skip_special != 0)?.into());
        Ok(())
    })
}

/// # Safety
/// All pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_describe(
    tokenizer: *const Tokenizer,
    json: *mut Bytes,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        json.write((*tokenizer).0.describe()?.into());
        Ok(())
    })
}

/// # Safety
/// All pointers are valid; `text` for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_id_of(
    tokenizer: *const Tokenizer,
    text: *const u8,
    size: usize,
    id: *mut i64,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        let text = std::str::from_utf8(view(text, size)).ok();
        id.write(text.and_then(|text| (*tokenizer).0.id_of(text)).map_or(-1, i64::from));
        Ok(())
    })
}
