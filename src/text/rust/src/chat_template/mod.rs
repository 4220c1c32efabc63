//! Chat templates, byte for byte as jinja2 renders them for transformers.
//!
//! minijinja brings the parser, scopes, loops, macros and the fuel-limited machine. The values follow Python: the syntax
//! tree is rewritten (`rewrite`) so that every operator, attribute, subscript and method call goes through our own
//! functions, and filters and tests that differ are replaced (`filters`, `tests`).

mod access;
mod environment;
mod filters;
mod format;
mod json;
mod method;
mod number;
mod operators;
mod rewrite;
mod sequence;
mod source;
mod tests;
mod text;
mod time;
mod value;

use std::collections::BTreeMap;

use minijinja::machinery::{self, CodeGenerator, Instructions};
use minijinja::{AutoEscape, Environment, Error, Value};

use crate::border::{guard, view, view_text, Bytes, Failure, Status};

const NAME: &str = "chat_template";

/// A compiled template. The fields drop in this order: the instructions borrow from the source, and both outlive no
/// render because a render borrows `self`.
pub struct ChatTemplate {
    instructions: Instructions<'static>,
    blocks: BTreeMap<&'static str, Instructions<'static>>,
    environment: Box<Environment<'static>>,
    _source: Box<str>,
}

/// One line that a user can act on: what went wrong, where, and why.
fn describe(error: &Error) -> String {
    let what = match error.detail() {
        Some(detail) => detail.to_string(),
        None => error.kind().to_string(),
    };
    match error.line() {
        Some(line) => format!("line {line}: {what}"),
        None => what,
    }
}

/// What parsing and compiling take at most: `source` bounds the depth to some 12,000 levels of up to 1 KiB.
const COMPILE_STACK_BYTES: usize = 32 << 20;

impl ChatTemplate {
    /// Compiles on a thread of its own, because the depth of a template must not depend on the stack of the caller.
    pub fn new(text: &str) -> Result<ChatTemplate, Failure> {
        let outcome = std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().stack_size(COMPILE_STACK_BYTES);
            let thread = builder.spawn_scoped(scope, || ChatTemplate::compile(text));
            thread.map(|t| t.join()).map_err(|e| Failure(Status::Internal, format!("no thread for a template: {e}")))
        })?;
        outcome.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    }

    fn compile(text: &str) -> Result<ChatTemplate, Failure> {
        let source: Box<str> = source::prepare(text).map_err(Failure::corrupt)?.into();
        // SAFETY: the text lives in its own allocation, which this struct keeps for as long as the instructions.
        let borrowed: &'static str = unsafe { &*(source.as_ref() as *const str) };
        let tree = machinery::parse(borrowed, NAME, environment::syntax()).map_err(|e| Failure::corrupt(describe(&e)))?;
        let mut generator = CodeGenerator::new(NAME, borrowed);
        generator.compile_stmt(&rewrite::statement(&tree));
        let (instructions, blocks) = generator.finish();
        Ok(ChatTemplate { instructions, blocks, environment: Box::new(environment::build()), _source: source })
    }

    pub fn render(&self, variables: &[u8], now: i64) -> Result<String, Failure> {
        let context = environment::context(variables, now)?;
        // SAFETY: the machine asks for one lifetime for all three; what it returns is dropped before they can be.
        let (environment, instructions, blocks) = unsafe {
            (
                &*(self.environment.as_ref() as *const Environment<'static>),
                &*(&self.instructions as *const Instructions<'static>),
                &*(&self.blocks as *const BTreeMap<&'static str, Instructions<'static>>),
            )
        };
        let mut text = String::new();
        let mut output = machinery::make_string_output(&mut text);
        let outcome = machinery::eval(environment, instructions, context, blocks, &mut output, AutoEscape::None);
        outcome.map(|_| ()).map_err(|e| Failure::invalid(describe(&e)))?;
        Ok(text)
    }
}

/// A Python exception that the template would have raised.
pub(crate) fn raise<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::new(minijinja::ErrorKind::InvalidOperation, message.into()))
}

pub(crate) type Answer = Result<Value, Error>;

/// # Safety
/// `source` is valid for `size` bytes; `out` and `error` are valid for a write.
#[no_mangle]
pub unsafe extern "C" fn godwit_template_new(
    source: *const u8,
    size: usize,
    out: *mut *mut ChatTemplate,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        let text = view_text(source, size).map_err(|f| Failure::corrupt(f.1))?;
        out.write(Box::into_raw(Box::new(ChatTemplate::new(text)?)));
        Ok(())
    })
}

/// # Safety
/// `chat_template` came from godwit_template_new and is freed once.
#[no_mangle]
pub unsafe extern "C" fn godwit_template_free(chat_template: *mut ChatTemplate) {
    if !chat_template.is_null() {
        drop(Box::from_raw(chat_template));
    }
}

/// # Safety
/// All pointers are valid; `variables` for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn godwit_template_render(
    chat_template: *const ChatTemplate,
    variables: *const u8,
    size: usize,
    now: i64,
    text: *mut Bytes,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        text.write((*chat_template).render(view(variables, size), now)?.into());
        Ok(())
    })
}
