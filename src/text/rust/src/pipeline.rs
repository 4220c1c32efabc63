//! A tokenizer of the crate `tokenizers` over any model, with what the border asks of one.

use std::collections::BTreeMap;

use tokenizers::models::unigram::Unigram;
use tokenizers::models::ModelWrapper;
use tokenizers::tokenizer::{
    AddedToken, AddedVocabulary, DecoderWrapper, Model, NormalizerWrapper, OffsetType, PostProcessorWrapper,
    PreTokenizedString, PreTokenizer, PreTokenizerWrapper, TokenizerImpl,
};

use crate::border::Failure;
use crate::bpe::Bpe;

pub type Parts<M> = TokenizerImpl<M, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

pub const ADD_SPECIAL: u32 = 1;
pub const PARSE_SPECIAL: u32 = 2;

pub fn text_of(error: tokenizers::Error) -> String {
    error.to_string()
}

/// What a pipeline asks of a model beside what the crate does.
pub trait TextModel: Model {
    fn kind(&self) -> &'static str;
    /// Every token by ascending id.
    fn each(&self, visit: &mut dyn FnMut(u32, &str));
    /// The same model for text in which special tokens are plain text, where that is another one.
    fn without_special_pieces(&self, is_special: &dyn Fn(u32) -> bool) -> Result<Option<Unigram>, Failure>;
}

impl TextModel for Bpe {
    fn kind(&self) -> &'static str {
        "BPE"
    }
    fn each(&self, visit: &mut dyn FnMut(u32, &str)) {
        self.texts().iter().for_each(|(id, text)| visit(id, text));
    }
    fn without_special_pieces(&self, _: &dyn Fn(u32) -> bool) -> Result<Option<Unigram>, Failure> {
        Ok(None)
    }
}

impl TextModel for ModelWrapper {
    fn kind(&self) -> &'static str {
        match self {
            ModelWrapper::BPE(_) => "BPE",
            ModelWrapper::Unigram(_) => "Unigram",
            ModelWrapper::WordPiece(_) => "WordPiece",
            ModelWrapper::WordLevel(_) => "WordLevel",
        }
    }

    fn each(&self, visit: &mut dyn FnMut(u32, &str)) {
        let by_id: BTreeMap<u32, String> = self.get_vocab().into_iter().map(|(text, id)| (id, text)).collect();
        by_id.iter().for_each(|(id, text)| visit(*id, text));
    }

    /// The same pieces under the same ids, with the text of special ones replaced by something no text can hold: the
    /// lattice of Unigram would find them in any text.
    fn without_special_pieces(&self, is_special: &dyn Fn(u32) -> bool) -> Result<Option<Unigram>, Failure> {
        let ModelWrapper::Unigram(model) = self else { return Ok(None) };
        let hide = |(id, (piece, score)): (usize, &(String, f64))| match is_special(id as u32) {
            true => (format!("\u{10ffff}\u{10fffe}{id}"), *score),
            false => (piece.clone(), *score),
        };
        let pieces = model.iter().enumerate().map(hide).collect();
        // The id of the unknown piece is only to be had from the serialised form.
        let written = serde_json::to_value(model).map_err(|e| Failure::corrupt(e.to_string()))?;
        let unk_id = written["unk_id"].as_u64().map(|id| id as usize);
        Unigram::from(pieces, unk_id, model.byte_fallback()).map(Some).map_err(|e| Failure::corrupt(text_of(e)))
    }
}

/// A pipeline whose model is known no more.
pub trait Pipeline: Send + Sync {
    fn encode(&self, text: &str, flags: u32) -> Result<Vec<u32>, Failure>;
    /// What the decoder of the file makes of these tokens.
    fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, Failure>;
    /// What decides how tokens become text again, as JSON.
    fn describe(&self) -> Result<String, Failure>;
    /// Every token by ascending id: the text as stored and whether it is special.
    fn visit(&self, visit: &mut dyn FnMut(u32, &str, bool));
    fn id_of(&self, text: &str) -> Option<u32>;
}

pub struct OverModel<M> {
    inner: Parts<M>,
    /// The added tokens with the special ones treated as text: what user text is split with.
    plain: AddedVocabulary,
    /// For models with special pieces of their own: the model without them.
    plain_model: Option<Unigram>,
}

impl<M: TextModel> OverModel<M> {
    pub fn new(mut inner: Parts<M>) -> Result<OverModel<M>, Failure> {
        // A file may carry limits of the training set-up; an engine never cuts or pads a prompt in silence.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|e| Failure::corrupt(text_of(e)))?;
        let mut plain = inner.get_added_vocabulary().clone();
        plain.set_encode_special_tokens(true);
        let added = inner.get_added_vocabulary().get_added_tokens_decoder();
        let is_special = |id: u32| added.get(&id).is_some_and(|token| token.special);
        let plain_model = inner.get_model().without_special_pieces(&is_special)?;
        Ok(OverModel { inner, plain, plain_model })
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
}

impl<M: TextModel + Send + Sync> Pipeline for OverModel<M> {
    fn encode(&self, text: &str, flags: u32) -> Result<Vec<u32>, Failure> {
        let add_special = flags & ADD_SPECIAL != 0;
        let encoding = if flags & PARSE_SPECIAL != 0 {
            self.inner.encode_fast(text, add_special)
        } else {
            self.encode_plain(text, add_special)
        };
        Ok(encoding.map_err(|e| Failure::invalid(text_of(e)))?.get_ids().to_vec())
    }

    fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, Failure> {
        self.inner.decode(ids, skip_special).map_err(|e| Failure::invalid(text_of(e)))
    }

    fn describe(&self) -> Result<String, Failure> {
        let failed = |e: serde_json::Error| Failure::corrupt(e.to_string());
        let parts = serde_json::json!({
            "decoder": serde_json::to_value(self.inner.get_decoder()).map_err(failed)?,
            "pre_tokenizer": serde_json::to_value(self.inner.get_pre_tokenizer()).map_err(failed)?,
            "model": self.inner.get_model().kind(),
        });
        Ok(parts.to_string())
    }

    fn visit(&self, visit: &mut dyn FnMut(u32, &str, bool)) {
        let decoder = self.inner.get_added_vocabulary().get_added_tokens_decoder();
        let added: BTreeMap<u32, &AddedToken> = decoder.iter().map(|(id, token)| (*id, token)).collect();
        let mut next = added.iter().peekable();
        self.inner.get_model().each(&mut |id, text| {
            while let Some((before, token)) = next.next_if(|(at, _)| **at < id) {
                visit(*before, &token.content, token.special);
            }
            match next.next_if(|(at, _)| **at == id) {
                Some((_, token)) => visit(id, &token.content, token.special),
                None => visit(id, text, false),
            }
        });
        next.for_each(|(id, token)| visit(*id, &token.content, token.special));
    }

    fn id_of(&self, text: &str) -> Option<u32> {
        self.inner.token_to_id(text)
    }
}
