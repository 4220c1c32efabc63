//! Text to ids over the crate `tokenizers`.

use std::collections::BTreeMap;
use std::ffi::c_void;

use tokenizers::models::unigram::Unigram;
use tokenizers::models::ModelWrapper;
use tokenizers::tokenizer::{
    AddedVocabulary, Model, OffsetType, PreTokenizedString, PreTokenizer, Tokenizer as HfTokenizer,
};

use crate::border::{guard, view, view_text, Bytes, Failure, Ids, Status};

const ADD_SPECIAL: u32 = 1;
const PARSE_SPECIAL: u32 = 2;

pub struct Tokenizer {
    inner: HfTokenizer,
    /// The added tokens with the special ones treated as text: what user text is split with.
    plain: AddedVocabulary,
    /// For Unigram: the model without the special pieces, which its lattice would find in any text.
    plain_model: Option<Unigram>,
}

fn describe(error: tokenizers::Error) -> String {
    error.to_string()
}

/// The same pieces under the same ids, with the text of special ones replaced by something no text can hold.
fn without_special_pieces(inner: &HfTokenizer) -> Result<Option<Unigram>, Failure> {
    let ModelWrapper::Unigram(model) = inner.get_model() else { return Ok(None) };
    let added = inner.get_added_tokens_decoder();
    let is_special = |id: usize| added.get(&(id as u32)).is_some_and(|token| token.special);
    let hide = |(id, (piece, score)): (usize, &(String, f64))| match is_special(id) {
        true => (format!("\u{10ffff}\u{10fffe}{id}"), *score),
        false => (piece.clone(), *score),
    };
    let pieces = model.iter().enumerate().map(hide).collect();
    // The id of the unknown piece is only to be had from the serialised form.
    let written = serde_json::to_value(model).map_err(|e| Failure::corrupt(e.to_string()))?;
    let unk_id = written["unk_id"].as_u64().map(|id| id as usize);
    Unigram::from(pieces, unk_id, model.byte_fallback()).map(Some).map_err(|e| Failure::corrupt(describe(e)))
}

impl Tokenizer {
    pub fn from_json(json: &[u8]) -> Result<Tokenizer, Failure> {
        let mut inner = HfTokenizer::from_bytes(json).map_err(|e| Failure::corrupt(describe(e)))?;
        // A file may carry limits of the training set-up; an engine never cuts or pads a prompt in silence.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|e| Failure::corrupt(describe(e)))?;
        let mut plain = inner.get_added_vocabulary().clone();
        plain.set_encode_special_tokens(true);
        let plain_model = without_special_pieces(&inner)?;
        Ok(Tokenizer { inner, plain, plain_model })
    }

    pub fn encode(&self, text: &str, flags: u32) -> Result<Vec<u32>, Failure> {
        let add_special = flags & ADD_SPECIAL != 0;
        let encoding = if flags & PARSE_SPECIAL != 0 {
            self.inner.encode_fast(text, add_special)
        } else {
            self.encode_plain(text, add_special)
        };
        Ok(encoding.map_err(|e| Failure::invalid(describe(e)))?.get_ids().to_vec())
    }

    /// The pipeline of the crate with one part exchanged: the added tokens leave special ones in the text.
    fn encode_plain(&self, text: &str, add_special: bool) -> tokenizers::Result<tokenizers::Encoding> {
        let mut pieces: PreTokenizedString = self.plain.extract_and_normalize(self.inner.get_normalizer(), text);
        if let Some(splitter) = self.inner.get_pre_tokenizer() {
            splitter.pre_tokenize(&mut pieces)?;
        }
        pieces.tokenize(|piece| match &self.plain_model {
            Some(model) => model.tokenize(piece.get()),
            None => self.inner.get_model().tokenize(piece.get()),
        })?;
        let encoding = pieces.into_encoding(None, 0, OffsetType::None)?;
        self.inner.post_process(encoding, None, add_special)
    }

    /// What decides how tokens become text again, as JSON.
    fn describe(&self) -> Result<String, Failure> {
        let failed = |e: serde_json::Error| Failure::corrupt(e.to_string());
        let model = match self.inner.get_model() {
            ModelWrapper::BPE(_) => "BPE",
            ModelWrapper::Unigram(_) => "Unigram",
            ModelWrapper::WordPiece(_) => "WordPiece",
            ModelWrapper::WordLevel(_) => "WordLevel",
        };
        let parts = serde_json::json!({
            "decoder": serde_json::to_value(self.inner.get_decoder()).map_err(failed)?,
            "pre_tokenizer": serde_json::to_value(self.inner.get_pre_tokenizer()).map_err(failed)?,
            "model": model,
        });
        Ok(parts.to_string())
    }

    /// Every token by id: the text as stored and whether it is special.
    fn tokens(&self) -> BTreeMap<u32, (String, bool)> {
        let mut tokens: BTreeMap<u32, (String, bool)> =
            self.inner.get_vocab(false).into_iter().map(|(text, id)| (id, (text, false))).collect();
        for (id, token) in self.inner.get_added_tokens_decoder() {
            tokens.insert(id, (token.content, token.special));
        }
        tokens
    }
}

/// # Safety
/// `json` is valid for `size` bytes; `out` and `error` are valid for a write.
#[no_mangle]
pub unsafe extern "C" fn godwit_tokenizer_new(
    json: *const u8,
    size: usize,
    out: *mut *mut Tokenizer,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        let tokenizer = Tokenizer::from_json(view(json, size))?;
        out.write(Box::into_raw(Box::new(tokenizer)));
        Ok(())
    })
}

/// # Safety
/// `tokenizer` came from godwit_tokenizer_new and is freed once.
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
        ids.write((*tokenizer).encode(text, flags)?.into());
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
        for (id, (text, special)) in (*tokenizer).tokens() {
            visit(context, id, text.as_ptr(), text.len(), special as i32);
        }
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
        let decoded = (*tokenizer).inner.decode(view(ids, size), skip_special != 0);
        text.write(decoded.map_err(|e| Failure::invalid(describe(e)))?.into());
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
        json.write((*tokenizer).describe()?.into());
        Ok(())
    })
}
