//! Token masks from grammars, over the crate `llguidance`.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher as LlMatcher, ParserFactory};
use toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};

use crate::border::{guard, view, view_text, Bytes, Failure, Status};

/// The tokens of one model as a trie of bytes, shared by its matchers.
pub struct GrammarVocabulary {
    factory: ParserFactory,
    size: usize,
}

pub struct Matcher {
    inner: LlMatcher,
    size: usize,
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::invalid(error.to_string())
}

impl GrammarVocabulary {
    fn new(tokens: &[Vec<u8>], end: u32) -> Result<GrammarVocabulary, Failure> {
        if end as usize >= tokens.len() {
            return Err(Failure::invalid(format!("end token {end} is outside of {} tokens", tokens.len())));
        }
        let trie = TokTrie::from(&TokRxInfo::new(tokens.len() as u32, end), tokens);
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&environment).map_err(failed)?;
        factory.quiet();
        Ok(GrammarVocabulary { factory, size: tokens.len() })
    }

    fn matcher(&self, kind: &str, grammar: &str) -> Result<Matcher, Failure> {
        let grammar = TopLevelGrammar::from_tagged_str(kind, grammar).map_err(failed)?;
        let parser = self.factory.create_parser(grammar).map_err(failed)?;
        Ok(Matcher { inner: LlMatcher::new(Ok(parser)), size: self.size })
    }
}

/// # Safety
/// `bytes` holds all tokens one after another, `offsets` has `count` + 1 ascending positions in it.
#[no_mangle]
pub unsafe extern "C" fn godwit_grammar_vocabulary_new(
    bytes: *const u8,
    offsets: *const usize,
    count: usize,
    end: u32,
    out: *mut *mut GrammarVocabulary,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        let offsets = view(offsets, count + 1);
        let bytes = view(bytes, offsets.last().copied().unwrap_or(0));
        let tokens: Vec<Vec<u8>> = offsets.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect();
        out.write(Box::into_raw(Box::new(GrammarVocabulary::new(&tokens, end)?)));
        Ok(())
    })
}

/// # Safety
/// `vocabulary` came from godwit_grammar_vocabulary_new and is freed once.
#[no_mangle]
pub unsafe extern "C" fn godwit_grammar_vocabulary_free(vocabulary: *mut GrammarVocabulary) {
    if !vocabulary.is_null() {
        drop(Box::from_raw(vocabulary));
    }
}

/// # Safety
/// All pointers are valid for their sizes.
#[no_mangle]
pub unsafe extern "C" fn godwit_matcher_new(
    vocabulary: *const GrammarVocabulary,
    kind: *const u8,
    kind_size: usize,
    grammar: *const u8,
    grammar_size: usize,
    out: *mut *mut Matcher,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        let (kind, grammar) = (view_text(kind, kind_size)?, view_text(grammar, grammar_size)?);
        out.write(Box::into_raw(Box::new((*vocabulary).matcher(kind, grammar)?)));
        Ok(())
    })
}

/// # Safety
/// `matcher` came from godwit_matcher_new and is freed once.
#[no_mangle]
pub unsafe extern "C" fn godwit_matcher_free(matcher: *mut Matcher) {
    if !matcher.is_null() {
        drop(Box::from_raw(matcher));
    }
}

/// # Safety
/// All pointers are valid; `words` for `count` words.
#[no_mangle]
pub unsafe extern "C" fn godwit_matcher_mask(
    matcher: *mut Matcher,
    words: *mut u32,
    count: usize,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        let matcher = &mut *matcher;
        if count < matcher.size.div_ceil(32) {
            return Err(Failure::invalid("the mask is too small for the vocabulary"));
        }
        let mask = matcher.inner.compute_mask_or_eos().map_err(failed)?;
        let found = mask.as_slice();
        let out = std::slice::from_raw_parts_mut(words, count);
        for (at, word) in out.iter_mut().enumerate() {
            *word = found.get(at).copied().unwrap_or(0);
        }
        Ok(())
    })
}

/// # Safety
/// All pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn godwit_matcher_accept(matcher: *mut Matcher, token: u32, error: *mut Bytes) -> Status {
    guard(error, || {
        let matcher = &mut *matcher;
        if token as usize >= matcher.size {
            return Err(Failure::invalid(format!("token {token} is outside of the vocabulary")));
        }
        matcher.inner.consume_token(token).map_err(failed)
    })
}

/// # Safety
/// All pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn godwit_matcher_complete(matcher: *mut Matcher, complete: *mut i32, error: *mut Bytes) -> Status {
    guard(error, || {
        complete.write((*matcher).inner.is_accepting().map_err(failed)? as i32);
        Ok(())
    })
}
