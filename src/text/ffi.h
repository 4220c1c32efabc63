// The C border to the Rust crate in rust/: opaque handles, explicit lengths, no panic and no exception
// crosses it.
//
// Every call returns a GodwitStatus. On anything but `godwit_ok` the out-parameters are untouched and `error`
// holds a message in UTF-8 (free it with godwit_bytes_free). Handles are immutable once made, so const calls
// may run on any number of threads; a matcher is owned by one thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum GodwitStatus {
  godwit_ok = 0,
  godwit_invalid_argument = 1,  // the text, ids or values handed in cannot be served
  godwit_corrupt = 2,           // a tokenizer, template or grammar that does not parse
  godwit_internal = 3,          // a panic on the Rust side, caught at the border
  godwit_overloaded = 4,        // served another time: too much of this kind is under way
} GodwitStatus;

// Memory owned by the library. `data` may be null when `size` is 0.
typedef struct GodwitBytes {
  uint8_t* data;
  size_t size;
} GodwitBytes;
typedef struct GodwitIds {
  uint32_t* data;
  size_t size;
} GodwitIds;

void godwit_bytes_free(GodwitBytes bytes);
void godwit_ids_free(GodwitIds ids);

// ---- tokenizer: the crate `tokenizers`
typedef struct GodwitTokenizer GodwitTokenizer;

enum {
  godwit_add_special = 1,    // run the post-processor (BOS, EOS, ...)
  godwit_parse_special = 2,  // control tokens spelled in the text become their ids
};

// `json`: the content of a tokenizer.json. `general`: not 0 where the crate's own model is to be made of it also where ours
// does the same in less time and memory.
GodwitStatus godwit_tokenizer_new(const char* json, size_t size, int general, GodwitTokenizer** tokenizer,
                                  GodwitBytes* error);
// Texts one after another; text i ends at byte ends[i].
typedef struct GodwitTexts {
  const char* bytes;
  const uint64_t* ends;
  size_t count;
} GodwitTexts;
// By rank. Merge i is text i: cuts[i] bytes of the left token, `gap` bytes that count for nothing, the right token.
typedef struct GodwitMerges {
  GodwitTexts texts;
  const uint32_t* cuts;
  size_t gap;
} GodwitMerges;
// `frame`: a tokenizer.json whose model, a BPE without dropout, prefix and suffix, has neither "vocab" nor "merges". Token i
// has the id i; of equal tokens the first counts.
GodwitStatus godwit_tokenizer_new_bpe(const char* frame, size_t size, const GodwitTexts* tokens,
                                      const GodwitMerges* merges, GodwitTokenizer** tokenizer,
                                      GodwitBytes* error);
void godwit_tokenizer_free(GodwitTokenizer* tokenizer);
GodwitStatus godwit_tokenizer_encode(const GodwitTokenizer* tokenizer, const char* text, size_t size,
                                     unsigned flags, GodwitIds* ids, GodwitBytes* error);
// The id of a token as stored, -1 where there is none.
GodwitStatus godwit_tokenizer_id_of(const GodwitTokenizer* tokenizer, const char* text, size_t size,
                                    int64_t* id, GodwitBytes* error);
// Calls `visit` once per token by ascending id: its text as stored, and whether it is a special added token.
typedef void (*GodwitVisitToken)(void* context, uint32_t id, const char* token, size_t size, int special);
GodwitStatus godwit_tokenizer_visit(const GodwitTokenizer* tokenizer, GodwitVisitToken visit, void* context,
                                    GodwitBytes* error);
// The decoder, pre-tokenizer and model type of the file as JSON: {"decoder": ..., "pre_tokenizer": ...,
// "model": "BPE"}.
GodwitStatus godwit_tokenizer_describe(const GodwitTokenizer* tokenizer, GodwitBytes* json,
                                       GodwitBytes* error);
// What the decoder of the file makes of these tokens (used where decoding is not a plain sum of bytes).
GodwitStatus godwit_tokenizer_decode(const GodwitTokenizer* tokenizer, const uint32_t* ids, size_t size,
                                     int skip_special, GodwitBytes* text, GodwitBytes* error);

// ---- chat templates: the crate `minijinja` with the value semantics of Python
typedef struct GodwitTemplate GodwitTemplate;

GodwitStatus godwit_template_new(const char* source, size_t size, GodwitTemplate** chat_template,
                                 GodwitBytes* error);
void godwit_template_free(GodwitTemplate* chat_template);
// `variables`: a JSON object of everything the template sees. `now`: seconds since 1970, for strftime_now.
GodwitStatus godwit_template_render(const GodwitTemplate* chat_template, const char* variables, size_t size,
                                    int64_t now, GodwitBytes* text, GodwitBytes* error);

// ---- grammars: the crate `llguidance`
typedef struct GodwitGrammarVocabulary GodwitGrammarVocabulary;
typedef struct GodwitGrammar GodwitGrammar;
typedef struct GodwitMatcher GodwitMatcher;

// Tokens as raw bytes, one after another; `offsets` has count + 1 positions. `special`: per token, not 0 where the bytes are
// the name of a token that is no text. `ends`: the ids that end a text, at least one.
GodwitStatus godwit_grammar_vocabulary_new(const char* bytes, const size_t* offsets, const uint8_t* special,
                                           size_t count, const uint32_t* ends, size_t end_count,
                                           GodwitGrammarVocabulary** vocabulary, GodwitBytes* error);
void godwit_grammar_vocabulary_free(GodwitGrammarVocabulary* vocabulary);
// `kind`: "json_object", "json_schema", "regex", "choice" (a JSON array of strings), "lark" or "gbnf". `strict`: not 0
// where a schema is refused that asks for what cannot be enforced. The mask of the first token is made as well. Ends within
// a second.
GodwitStatus godwit_grammar_new(const GodwitGrammarVocabulary* vocabulary, const char* kind, size_t kind_size,
                                const char* text, size_t size, int strict, GodwitGrammar** grammar,
                                GodwitBytes* error);
// Refuses a JSON Schema that asks for what cannot be enforced, without compiling it.
GodwitStatus godwit_schema_check(const char* schema, size_t size, GodwitBytes* error);
void godwit_grammar_free(GodwitGrammar* grammar);
// What of a schema is not enforced: a JSON array of strings.
GodwitStatus godwit_grammar_notes(const GodwitGrammar* grammar, GodwitBytes* notes, GodwitBytes* error);
GodwitStatus godwit_matcher_new(const GodwitGrammar* grammar, GodwitMatcher** matcher, GodwitBytes* error);
GodwitStatus godwit_matcher_clone(const GodwitMatcher* matcher, GodwitMatcher** copy, GodwitBytes* error);
void godwit_matcher_free(GodwitMatcher* matcher);
// Bit `id` of `words` is set when that token may come next.
GodwitStatus godwit_matcher_mask(GodwitMatcher* matcher, uint32_t* words, size_t count, GodwitBytes* error);
GodwitStatus godwit_matcher_accept(GodwitMatcher* matcher, uint32_t token, GodwitBytes* error);
GodwitStatus godwit_matcher_rollback(GodwitMatcher* matcher, size_t tokens, GodwitBytes* error);
// Whether the text so far may end here, and whether nothing else can follow.
GodwitStatus godwit_matcher_state(GodwitMatcher* matcher, int* complete, int* stopped, GodwitBytes* error);
// The bytes that must come next, as far as they are certain.
GodwitStatus godwit_matcher_forced(GodwitMatcher* matcher, GodwitBytes* text, GodwitBytes* error);

#ifdef __cplusplus
}
#endif
