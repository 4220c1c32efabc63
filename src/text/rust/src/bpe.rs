//! Byte pair encoding over a compact vocabulary: what the crate's own model does without dropout, prefix and suffix,
//! made in a fraction of its time and memory. tests/tokenizers holds the two against each other.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tokenizers::models::bpe::BpeTrainer;
use tokenizers::tokenizer::{Model, Result, Token};

use crate::border::Failure;
use crate::merges::{Merges, Word};
use crate::texts::Texts;

/// What a model does with text that its vocabulary does not spell.
pub struct BpeRules {
    pub unknown: Option<String>,
    pub fuse_unknown: bool,
    /// Bytes of such a character become <0xNN>, where all of them are there.
    pub byte_fallback: bool,
    /// A word that is a token is not merged.
    pub ignore_merges: bool,
}

pub struct Bpe {
    texts: Texts,
    merges: Merges,
    rules: BpeRules,
    unknown: Option<u32>,
    bytes: Option<Box<[Option<u32>; 256]>>,
}

/// Both parts and their union must be tokens. `union` is memory for the last of them.
pub fn add_merge(
    merges: &mut Merges,
    texts: &Texts,
    rank: u32,
    (left, right): (&str, &str),
    union: &mut String,
) -> std::result::Result<(), Failure> {
    let find = |text: &str| {
        texts.find(text).ok_or_else(|| Failure::corrupt(format!("a merge needs the token '{text}', and there is none")))
    };
    union.clear();
    union.push_str(left);
    union.push_str(right);
    merges.insert(find(left)?, find(right)?, rank, find(union)?);
    Ok(())
}

impl Bpe {
    pub fn new(texts: Texts, merges: Merges, rules: BpeRules) -> Bpe {
        let unknown = rules.unknown.as_deref().and_then(|text| texts.find(text));
        let bytes = rules.byte_fallback.then(|| Box::new(std::array::from_fn(|byte| texts.find(&format!("<0x{byte:02X}>")))));
        Bpe { texts, merges, rules, unknown, bytes }
    }

    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    fn unknown(&self, text: &str) -> Result<u32> {
        self.unknown.ok_or_else(|| format!("Unk token `{text}` not found in the vocabulary").into())
    }

    /// The ids of the bytes of a character that is no token.
    fn fallback(&self, character: &str) -> Option<Vec<u32>> {
        let bytes = self.bytes.as_ref()?;
        character.bytes().map(|byte| bytes[byte as usize]).collect()
    }

    /// One token a character, before any merge.
    fn spell(&self, word: &str) -> Result<Word> {
        let mut spelled = Word::with_capacity(word.len());
        let mut pending: Option<(u32, u32)> = None; // an unknown token that may yet grow
        for (at, character) in word.char_indices() {
            let bytes = character.len_utf8();
            let text = &word[at..at + bytes];
            if let Some(id) = self.texts.find(text) {
                if let Some((unknown, bytes)) = pending.take() {
                    spelled.push(unknown, bytes);
                }
                spelled.push(id, bytes as u32);
            } else if let Some(ids) = self.fallback(text) {
                ids.into_iter().for_each(|id| spelled.push(id, 1));
            } else if let Some(name) = &self.rules.unknown {
                let fused = if self.rules.fuse_unknown { pending.take() } else { None };
                if let Some((unknown, bytes)) = pending.take() {
                    spelled.push(unknown, bytes);
                }
                let before = fused.map_or(0, |(_, bytes)| bytes);
                pending = Some((self.unknown(name)?, before + bytes as u32));
            }
        }
        if let Some((unknown, bytes)) = pending {
            spelled.push(unknown, bytes);
        }
        Ok(spelled)
    }
}

impl Model for Bpe {
    type Trainer = BpeTrainer;

    fn tokenize(&self, word: &str) -> Result<Vec<Token>> {
        if word.is_empty() {
            return Ok(vec![]);
        }
        if self.rules.ignore_merges {
            if let Some(id) = self.texts.find(word) {
                return Ok(vec![Token::new(id, word.to_string(), (0, word.len()))]);
            }
        }
        u32::try_from(word.len()).map_err(|_| format!("a word of {} bytes", word.len()))?;
        let mut spelled = self.spell(word)?;
        self.merges.apply(&mut spelled);
        let mut at = 0;
        let token = |(id, bytes): (u32, u32)| {
            let begin = at;
            at += bytes as usize;
            Token::new(id, self.texts.get(id).unwrap_or_default().to_string(), (begin, at))
        };
        Ok(spelled.tokens().map(token).collect())
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.texts.find(token)
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        self.texts.get(id).map(str::to_string)
    }

    fn get_vocab(&self) -> HashMap<String, u32> {
        self.texts.iter().map(|(id, text)| (text.to_string(), id)).collect()
    }

    fn get_vocab_size(&self) -> usize {
        self.texts.len()
    }

    fn save(&self, _folder: &Path, _prefix: Option<&str>) -> Result<Vec<PathBuf>> {
        Err("this model is not written".into())
    }

    fn get_trainer(&self) -> BpeTrainer {
        BpeTrainer::default()
    }
}
