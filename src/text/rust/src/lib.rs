//! Tokenizers, chat templates and grammar masks for the C++ side. The border is src/text/ffi.h; nothing here panics
//! across it.

mod border;
mod bpe;
mod chat_template;
mod grammar;
mod json;
mod merges;
mod parts;
mod pipeline;
mod texts;
mod tokenizer;
