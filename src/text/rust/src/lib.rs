//! Tokenizers, chat templates and grammar masks for the C++ side. The border is src/text/ffi.h; nothing here panics
//! across it.

mod border;
mod bpe;
mod chat_template;
mod disjoint;
mod ecma;
mod finite;
mod gbnf;
mod grammar;
mod grammar_spec;
mod json;
mod merges;
mod parts;
mod pipeline;
mod pointer;
mod schema;
mod texts;
mod tokenizer;
