//! A tokenizer.json with a plain BPE model, read without a tree of its two long lists.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

use crate::bpe::{add_merge, Bpe};
use crate::border::Failure;
use crate::merges::Merges;
use crate::parts::assemble;
use crate::pipeline::OverModel;
use crate::texts::Texts;

/// A cursor over JSON that may be damaged: it finds where values begin and end, and nothing is true of what lies between.
struct Cursor<'a> {
    json: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.json.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.json.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    fn string(&mut self) -> Option<Range<usize>> {
        self.take(b'"')?;
        let begin = self.at;
        loop {
            match self.json.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(begin..self.at - 1)
    }

    fn value(&mut self) -> Option<Range<usize>> {
        self.peek()?;
        let begin = self.at;
        let mut depth = 0;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' | b',' if depth == 0 => break,
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
            if depth == 0 && self.json.get(self.at - 1).is_some_and(|last| b"\"}]".contains(last)) {
                break;
            }
        }
        Some(begin..self.at)
    }

    /// Where the members of the object begin and end, by key. `None` where a key stands twice.
    fn members(mut self) -> Option<HashMap<Vec<u8>, Range<usize>>> {
        let mut members = HashMap::new();
        self.take(b'{')?;
        while self.peek()? != b'}' {
            let key = self.string()?;
            self.take(b':')?;
            let value = self.value()?;
            if members.insert(self.json[key].to_vec(), value).is_some() {
                return None;
            }
            if self.peek()? != b'}' {
                self.take(b',')?;
            }
        }
        Some(members)
    }
}

struct Lists<'a> {
    /// The file without them.
    frame: Value,
    vocab: &'a [u8],
    merges: &'a [u8],
}

fn split(json: &[u8]) -> Option<Lists<'_>> {
    let model = Cursor { json, at: 0 }.members()?.remove(b"model".as_slice())?;
    let members = Cursor { json: &json[..model.end], at: model.start }.members()?;
    let (vocab, merges) = (members.get(b"vocab".as_slice())?, members.get(b"merges".as_slice())?);
    let mut frame = Vec::new();
    let mut at = 0;
    let mut both = [vocab, merges];
    both.sort_by_key(|range| range.start);
    for range in both {
        frame.extend_from_slice(&json[at..range.start]);
        frame.extend_from_slice(b"null");
        at = range.end;
    }
    frame.extend_from_slice(&json[at..]);
    Some(Lists { frame: serde_json::from_slice(&frame).ok()?, vocab: &json[vocab.clone()], merges: &json[merges.clone()] })
}

/// What `Bpe` does, and nothing beside.
fn is_plain(frame: &Value) -> bool {
    let model = &frame["model"];
    let is_empty = |key: &str| model[key].is_null() || model[key] == "";
    let is_flag = |key: &str| model[key].is_null() || model[key].is_boolean();
    model["type"] == "BPE"
        && (frame["version"].is_null() || frame["version"] == "1.0")
        && model["dropout"].is_null()
        && (model["unk_token"].is_null() || model["unk_token"].is_string())
        && ["continuing_subword_prefix", "end_of_word_suffix"].into_iter().all(is_empty)
        && ["fuse_unk", "byte_fallback", "ignore_merges"].into_iter().all(is_flag)
}

/// Ids without a text may be as many as ids with one; more are no vocabulary for a table by id.
fn texts_of(vocab: &[u8]) -> Option<Texts> {
    let vocab: HashMap<String, u32> = serde_json::from_slice(vocab).ok()?;
    let mut by_id: Vec<(u32, &str)> = vocab.iter().map(|(text, id)| (*id, text.as_str())).collect();
    by_id.sort_unstable();
    let most = by_id.last().map_or(0, |(id, _)| *id as usize + 1);
    if most > 2 * by_id.len() + 1024 || by_id.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    let mut texts = Texts::with_capacity(most, vocab.keys().map(String::len).sum());
    let mut next = 0;
    for (id, text) in by_id {
        for _ in next..id {
            texts.push(None).ok()?;
        }
        texts.push(Some(text)).ok()?;
        next = id + 1;
    }
    Some(texts)
}

/// Pairs, or texts with one space between the parts, as older files have them.
fn merges_of(merges: &[u8], texts: &Texts) -> Option<Merges> {
    let pairs: Vec<(String, String)> = serde_json::from_slice(merges).ok().or_else(|| {
        let lines: Vec<String> = serde_json::from_slice(merges).ok()?;
        let pair = |line: &String| {
            let (left, right) = line.split_once(' ')?;
            (!right.contains(' ') && !line.starts_with("#version")).then(|| (left.to_string(), right.to_string()))
        };
        lines.iter().map(pair).collect()
    })?;
    let mut table = Merges::with_capacity(pairs.len());
    let mut union = String::new();
    for (rank, (left, right)) in pairs.iter().enumerate() {
        add_merge(&mut table, texts, rank as u32, (left, right), &mut union).ok()?;
    }
    Some(table)
}

/// `None` for every file that is another one, or damaged: the crate reads it, or says what is wrong.
pub fn bpe_from_json(json: &[u8]) -> Option<Result<OverModel<Bpe>, Failure>> {
    let lists = split(json)?;
    if !is_plain(&lists.frame) {
        return None;
    }
    let texts = texts_of(lists.vocab)?;
    let merges = merges_of(lists.merges, &texts)?;
    Some(assemble(lists.frame, texts, merges))
}
