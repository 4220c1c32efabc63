// BERT's WordPiece as GGUF files hold it, in the parts of a tokenizer.json. Internal to this module.
//
// llama.cpp's converter writes a piece that begins a word as U+2581 and its text, and one that continues a
// word as its text alone; control tokens stay as they are. The text before the pieces is BERT's own: cleaned,
// each CJK character a word, and by default in small letters without accents, as llama.cpp reads every file
// that does not say otherwise (tokenizer.ggml.normalizer.lowercase and .strip_accents). tokenizer.ggml.pre
// changes none of that.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "text/gguf_vocabulary.h"

namespace godwit::text {

// The same tokens as WordPiece spells them ("word", "##piece"), with the tokens that the id keys name typed
// as control tokens and cls_id filled from bos_id where only that is there. The lists of `vocabulary` fit
// each other. Throws Error{corrupt_file} for an id outside of the vocabulary, and where [CLS], [SEP] or [UNK]
// has none.
GgufVocabulary with_word_pieces(GgufVocabulary vocabulary, std::string_view origin);

// For a vocabulary that with_word_pieces() made. `map`: every token with its id.
Json word_piece_normalizer(const GgufVocabulary& vocabulary);
Json word_piece_model(const GgufVocabulary& vocabulary, Json map);
// [CLS] before and [SEP] behind each text, also where add_bos_token says no: llama.cpp asks nobody, either.
Json word_piece_post_processor(const GgufVocabulary& vocabulary);

}  // namespace godwit::text
