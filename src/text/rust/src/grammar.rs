//! Token masks from grammars, over the crate `llguidance`.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use llguidance::{Matcher as LlMatcher, ParserFactory, TokenParser};
use toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};

use crate::border::{guard, panic_message, silence_panics, view, view_text, Bytes, Failure, Status};
use crate::grammar_spec::{check, read, Spec};
use crate::schema::one_line;

/// A grammar that takes more processor time to compile is refused, however busy the machine is. The limits of the compiler
/// end its thread soon after.
const MAX_COMPILE: Duration = Duration::from_millis(800);
/// And one that has not been compiled after so long is, whatever it was given of the processor.
const MAX_WAIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);
/// Compilations that were given up and still run; others wait for one of them to end.
const MAX_ABANDONED: usize = 2;
/// Schemas that refer to each other make the compiler recurse. Untouched pages cost nothing.
const COMPILE_STACK: usize = 256 * 1024 * 1024;

/// The tokens of one model as a trie of bytes, shared by its grammars.
pub struct GrammarVocabulary {
    factory: Arc<ParserFactory>,
    abandoned: Arc<AtomicUsize>,
    size: usize,
}

/// A compiled grammar at its start. Each matcher gets automata of its own, so that none waits for another or breaks it.
pub struct Grammar {
    start: Mutex<TokenParser>,
    first: Arc<[u32]>,
    notes: String,
    size: usize,
}

pub struct Matcher {
    inner: LlMatcher,
    /// The mask of the first token, until there is one.
    first: Option<Arc<[u32]>>,
    size: usize,
}

/// What the crate says beside its message (dumps of its state, backtraces) is not for the user.
fn plain(message: &str) -> String {
    let cut = ["\n<backtrace>", "\n<state>", "\n<non-verbose/>"].iter().filter_map(|mark| message.find(mark)).min();
    let cut = cut.unwrap_or(message.len());
    let message = message[..cut].trim();
    message.chars().take(2000).collect()
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::invalid(plain(&error.to_string()))
}

impl GrammarVocabulary {
    fn new(words: &[Vec<u8>], ends: &[u32]) -> Result<GrammarVocabulary, Failure> {
        if ends.is_empty() {
            return Err(Failure::invalid("there is no token that ends a text"));
        }
        if let Some(end) = ends.iter().find(|end| **end as usize >= words.len()) {
            return Err(Failure::invalid(format!("end token {end} is outside of {} tokens", words.len())));
        }
        let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, ends[0]), words).with_eos_tokens(ends);
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&environment).map_err(failed)?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.verbose_errors = false;
        limits.max_lexer_states = 50_000;
        Ok(GrammarVocabulary { factory: Arc::new(factory), abandoned: Arc::default(), size: words.len() })
    }

    /// On a thread of its own: with a stack for deep schemas, and left behind when it takes too long.
    fn compile(&self, spec: Spec) -> Result<Grammar, Failure> {
        self.wait_for_room()?;
        let (factory, running) = (self.factory.clone(), Arc::new(AtomicUsize::new(0)));
        let (abandoned, state, caller) = (self.abandoned.clone(), running.clone(), std::thread::current());
        let work = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| compile_on(&factory, &spec)))
                .unwrap_or_else(|payload| Err(Failure::invalid(panic_message(payload))));
            if state.fetch_add(1, Ordering::SeqCst) == 1 {
                abandoned.fetch_sub(1, Ordering::SeqCst);
            }
            caller.unpark();
            outcome
        };
        let thread = std::thread::Builder::new().name("grammar".into()).stack_size(COMPILE_STACK);
        let begin = Instant::now();
        let thread =
            thread.spawn(work).map_err(|e| Failure(Status::Internal, format!("no thread to compile on: {e}")))?;
        loop {
            if running.load(Ordering::SeqCst) > 0 {
                // Joined, which a thread sanitizer sees: what Rust's channels and locks order it cannot.
                let broke_off = |_| Failure(Status::Internal, "the compilation broke off".into());
                let (start, first, notes) = thread.join().map_err(broke_off)??;
                return Ok(Grammar { start: Mutex::new(start), first, notes, size: self.size });
            }
            std::thread::park_timeout(LOOK);
            if processor_time(&thread, begin) > MAX_COMPILE || begin.elapsed() > MAX_WAIT {
                break;
            }
        }
        self.abandoned.fetch_add(1, Ordering::SeqCst);
        if running.fetch_add(1, Ordering::SeqCst) == 1 {
            self.abandoned.fetch_sub(1, Ordering::SeqCst);
        }
        Err(Failure::invalid(format!("it is too complex: compiling takes more than {MAX_COMPILE:?}")))
    }

    fn wait_for_room(&self) -> Result<(), Failure> {
        let begin = Instant::now();
        while self.abandoned.load(Ordering::SeqCst) >= MAX_ABANDONED {
            if begin.elapsed() > MAX_WAIT {
                let why = "other grammars that are too complex are still being compiled";
                return Err(Failure(Status::Overloaded, why.into()));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// What a thread has had of a processor so far; where the system does not say, the time since it began.
#[cfg(target_os = "linux")]
fn processor_time<T>(thread: &std::thread::JoinHandle<T>, begin: Instant) -> Duration {
    use std::os::unix::thread::JoinHandleExt;
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // The handle keeps the thread's id valid after its end.
    let known = unsafe {
        libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0
    };
    if known {
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    } else {
        begin.elapsed()
    }
}

#[cfg(not(target_os = "linux"))]
fn processor_time<T>(_: &std::thread::JoinHandle<T>, begin: Instant) -> Duration {
    begin.elapsed()
}

fn compile_on(factory: &ParserFactory, spec: &Spec) -> Result<(TokenParser, Arc<[u32]>, String), Failure> {
    let (grammar, notes) = read(spec).map_err(|why| Failure::invalid(plain(&why)))?;
    let mut parser = factory.create_parser(grammar).map_err(|e| Failure::invalid(one_line(&plain(&e.to_string()))))?;
    parser.start_without_prompt();
    let mask = begun(&parser)?.compute_mask_or_eos().map_err(failed)?;
    if mask.is_zero() {
        return Err(Failure::invalid("no token of the model begins it"));
    }
    Ok((parser, mask.as_slice().into(), serde_json::to_string(&notes).unwrap_or_default()))
}

fn begun(parser: &TokenParser) -> Result<LlMatcher, Failure> {
    let mut matcher = LlMatcher::new(Ok(parser.deep_clone()));
    // Where nothing but the end can come, it is known before the first token.
    matcher.consume_tokens(&[]).map_err(failed)?;
    Ok(matcher)
}

impl Grammar {
    fn matcher(&self) -> Result<Matcher, Failure> {
        let parser = self.start.lock().map_err(|_| Failure(Status::Internal, "a thread broke off".into()))?;
        Ok(Matcher { inner: begun(&parser)?, first: Some(self.first.clone()), size: self.size })
    }
}

impl Matcher {
    fn mask(&mut self, out: &mut [u32]) -> Result<(), Failure> {
        if out.len() < self.size.div_ceil(32) {
            return Err(Failure::invalid("the mask is too small for the vocabulary"));
        }
        match &self.first {
            Some(first) => copy(first, out),
            None => copy(self.inner.compute_mask_or_eos().map_err(failed)?.as_slice(), out),
        }
        Ok(())
    }

    fn accept(&mut self, token: u32) -> Result<(), Failure> {
        if token as usize >= self.size {
            return Err(Failure::invalid(format!("token {token} is outside of the vocabulary")));
        }
        self.first = None;
        self.inner.consume_token(token).map_err(failed)
    }
}

fn copy(mask: &[u32], out: &mut [u32]) {
    let common = mask.len().min(out.len());
    out[..common].copy_from_slice(&mask[..common]);
    out[common..].fill(0);
}

/// # Safety
/// `bytes` holds all tokens one after another, `offsets` has `count` + 1 ascending positions in it; `special` one flag
/// for each token, `ends` `end_count` ids.
#[no_mangle]
pub unsafe extern "C" fn godwit_grammar_vocabulary_new(
    bytes: *const u8,
    offsets: *const usize,
    special: *const u8,
    count: usize,
    ends: *const u32,
    end_count: usize,
    out: *mut *mut GrammarVocabulary,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        let offsets = view(offsets, count + 1);
        let bytes = view(bytes, offsets.last().copied().unwrap_or(0));
        let special = view(special, count);
        let word = |(id, pair): (usize, &[usize])| {
            let text = &bytes[pair[0]..pair[1]];
            match special[id] != 0 {
                false if text.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) => Vec::new(), // begins no text
                false => text.to_vec(),
                true => [&[TokTrie::SPECIAL_TOKEN_MARKER], text].concat(),
            }
        };
        let words: Vec<Vec<u8>> = offsets.windows(2).enumerate().map(word).collect();
        out.write(Box::into_raw(Box::new(GrammarVocabulary::new(&words, view(ends, end_count))?)));
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
pub unsafe extern "C" fn godwit_grammar_new(
    vocabulary: *const GrammarVocabulary,
    kind: *const u8,
    kind_size: usize,
    text: *const u8,
    text_size: usize,
    strict: i32,
    out: *mut *mut Grammar,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        silence_panics();
        let (kind, text) = (view_text(kind, kind_size)?.to_string(), view_text(text, text_size)?.to_string());
        let grammar = (*vocabulary).compile(Spec { kind, text, strict: strict != 0 })?;
        out.write(Box::into_raw(Box::new(grammar)));
        Ok(())
    })
}

/// # Safety
/// All pointers are valid for their sizes.
#[no_mangle]
pub unsafe extern "C" fn godwit_schema_check(schema: *const u8, size: usize, error: *mut Bytes) -> Status {
    guard(error, || check(view_text(schema, size)?).map_err(|why| Failure::invalid(plain(&why))))
}

/// # Safety
/// `grammar` came from godwit_grammar_new and is freed once.
#[no_mangle]
pub unsafe extern "C" fn godwit_grammar_free(grammar: *mut Grammar) {
    if !grammar.is_null() {
        drop(Box::from_raw(grammar));
    }
}

/// # Safety
/// All pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn godwit_grammar_notes(grammar: *const Grammar, notes: *mut Bytes, error: *mut Bytes) -> Status {
    guard(error, || {
        notes.write((*grammar).notes.clone().into());
        Ok(())
    })
}

/// # Safety
/// All pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn godwit_matcher_new(grammar: *const Grammar, out: *mut *mut Matcher, error: *mut Bytes) -> Status {
    guard(error, || {
        out.write(Box::into_raw(Box::new((*grammar).matcher()?)));
        Ok(())
    })
}

/// # Safety
/// All pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn godwit_matcher_clone(matcher: *const Matcher, out: *mut *mut Matcher, error: *mut Bytes) -> Status {
    guard(error, || {
        let matcher = &*matcher;
        let copy = Matcher { inner: matcher.inner.deep_clone(), first: matcher.first.clone(), size: matcher.size };
        out.write(Box::into_raw(Box::new(copy)));
        Ok(())
    })
}

/// # Safety
/// `matcher` came from godwit_matcher_new or godwit_matcher_clone and is freed once.
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
    guard(error, || (*matcher).mask(std::slice::from_raw_parts_mut(words, count)))
}

/// # Safety
/// All pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn godwit_matcher_accept(matcher: *mut Matcher, token: u32, error: *mut Bytes) -> Status {
    guard(error, || (*matcher).accept(token))
}

/// # Safety
/// All pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn godwit_matcher_rollback(matcher: *mut Matcher, tokens: usize, error: *mut Bytes) -> Status {
    guard(error, || (*matcher).inner.rollback(tokens).map_err(failed))
}

/// # Safety
/// All pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn godwit_matcher_state(
    matcher: *mut Matcher,
    complete: *mut i32,
    stopped: *mut i32,
    error: *mut Bytes,
) -> Status {
    guard(error, || {
        complete.write((*matcher).inner.is_accepting().map_err(failed)? as i32);
        stopped.write((*matcher).inner.is_stopped() as i32);
        Ok(())
    })
}

/// # Safety
/// All pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn godwit_matcher_forced(matcher: *mut Matcher, text: *mut Bytes, error: *mut Bytes) -> Status {
    guard(error, || {
        text.write((*matcher).inner.compute_ff_bytes().into());
        Ok(())
    })
}
