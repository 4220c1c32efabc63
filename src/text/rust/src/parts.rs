//! A BPE tokenizer out of its parts: the lists as they stand in a file, and the rest as a small JSON object.

use serde_json::Value;
use tokenizers::tokenizer::{AddedToken, DecoderWrapper, NormalizerWrapper, PaddingParams, PostProcessorWrapper, PreTokenizerWrapper, TruncationParams};

use crate::border::{view, Failure};
use crate::bpe::{add_merge, Bpe, BpeRules};
use crate::merges::Merges;
use crate::pipeline::{text_of, OverModel, Parts};
use crate::texts::Texts;

/// Texts one after another; `ends[i]` is where text i ends.
#[repr(C)]
pub struct TextList {
    bytes: *const u8,
    ends: *const u64,
    count: usize,
}

/// Merge i is the text i of the list: `cuts[i]` bytes, `gap` bytes that count for nothing, the right part.
#[repr(C)]
pub struct MergeList {
    texts: TextList,
    cuts: *const u32,
    gap: usize,
}

struct Slices<'a> {
    bytes: &'a [u8],
    ends: &'a [u64],
}

impl TextList {
    /// # Safety
    /// The pointers are valid for `count` ends and as many bytes as the last of them, while the result is used.
    unsafe fn slices<'a>(&self) -> Result<Slices<'a>, Failure> {
        let ends: &[u64] = view(self.ends, self.count);
        if !ends.is_sorted() {
            return Err(Failure::invalid("the ends of the texts do not ascend"));
        }
        Ok(Slices { bytes: view(self.bytes, ends.last().map_or(0, |end| *end as usize)), ends })
    }
}

impl<'a> Slices<'a> {
    fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        let (bytes, mut begin) = (self.bytes, 0);
        self.ends.iter().map(move |end| {
            let text = &bytes[begin..*end as usize];
            begin = *end as usize;
            text
        })
    }
}

/// # Safety
/// As `TextList::slices`, for both lists, and `cuts` for one cut a merge.
pub unsafe fn bpe_from_parts(frame: &[u8], tokens: &TextList, merges: &MergeList) -> Result<OverModel<Bpe>, Failure> {
    let cuts = view(merges.cuts, merges.texts.count);
    build(frame, &tokens.slices()?, &merges.texts.slices()?, cuts, merges.gap)
}

fn corrupt(error: impl std::fmt::Display) -> Failure {
    Failure::corrupt(error.to_string())
}

fn rules_of(model: &Value) -> BpeRules {
    let is = |key: &str| model[key].as_bool().unwrap_or(false);
    BpeRules {
        unknown: model["unk_token"].as_str().map(str::to_string),
        fuse_unknown: is("fuse_unk"),
        byte_fallback: is("byte_fallback"),
        ignore_merges: is("ignore_merges"),
    }
}

macro_rules! part {
    ($frame:ident, $key:literal, $part:ty) => {
        serde_json::from_value::<Option<$part>>($frame[$key].take()).map_err(corrupt)?
    };
}

/// `frame`: a tokenizer.json whose model has neither vocab nor merges.
pub fn assemble(mut frame: Value, texts: Texts, merges: Merges) -> Result<OverModel<Bpe>, Failure> {
    let mut parts = Parts::new(Bpe::new(texts, merges, rules_of(&frame["model"])));
    let normalizer = part!(frame, "normalizer", NormalizerWrapper);
    parts.with_normalizer(normalizer).map_err(|e| Failure::corrupt(text_of(e)))?;
    parts.with_pre_tokenizer(part!(frame, "pre_tokenizer", PreTokenizerWrapper));
    parts.with_post_processor(part!(frame, "post_processor", PostProcessorWrapper));
    parts.with_decoder(part!(frame, "decoder", DecoderWrapper));
    // Limits of the training set-up: they must be well formed, and nobody follows them.
    part!(frame, "truncation", TruncationParams);
    part!(frame, "padding", PaddingParams);
    let added = part!(frame, "added_tokens", Vec<AddedToken>).unwrap_or_default();
    parts.add_tokens(added).map_err(|e| Failure::corrupt(text_of(e)))?;
    OverModel::new(parts)
}

/// Bytes that are no UTF-8 become U+FFFD, in tokens and in the parts of merges.
fn build(frame: &[u8], tokens: &Slices, merges: &Slices, cuts: &[u32], gap: usize) -> Result<OverModel<Bpe>, Failure> {
    let frame: Value = serde_json::from_slice(frame).map_err(corrupt)?;
    let mut texts = Texts::with_capacity(tokens.ends.len(), tokens.bytes.len());
    for token in tokens.iter() {
        texts.push(Some(&String::from_utf8_lossy(token)))?;
    }
    let mut table = Merges::with_capacity(cuts.len());
    let mut union = String::new();
    for (rank, (merge, cut)) in merges.iter().zip(cuts).enumerate() {
        let parts = merge.get(..*cut as usize).zip(merge.get(*cut as usize + gap..));
        let (left, right) = parts.ok_or_else(|| Failure::invalid(format!("merge {rank} is cut behind its end")))?;
        let (left, right) = (String::from_utf8_lossy(left), String::from_utf8_lossy(right));
        add_merge(&mut table, &texts, rank as u32, (&left, &right), &mut union)?;
    }
    assemble(frame, texts, table)
}
