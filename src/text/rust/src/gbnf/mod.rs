//! Grammars in GBNF (the notation of llama.cpp) as Lark text for the grammar compiler.

mod emit;
mod parse;

pub use emit::to_lark;

/// An expression of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// One code point of these ranges, or of all others.
    Class { negated: bool, ranges: Vec<(u32, u32)> },
    Rule(usize),
    /// A token of the vocabulary: "<[12]>" or "<name>".
    Token(String),
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    Repeat(Box<Node>, u32, Option<u32>),
}

impl Node {
    pub fn nothing() -> Node {
        Node::Sequence(Vec::new())
    }
}

pub struct Grammar {
    pub rules: Vec<Node>,
    pub root: usize,
}
