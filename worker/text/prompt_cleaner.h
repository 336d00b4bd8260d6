// What happens to a prompt before the tokenizer sees it.
#pragma once

#include <string>
#include <string_view>

namespace merope::worker {

// The steps of Wan's own pipelines: text repair, HTML references undone twice, white space trimmed and its runs made one
// space. Of the repair (the Python library ftfy) this does what matters for text that was UTF-8 all along: references undone
// in the lines before the first '<', terminal escapes and invisible control characters dropped, curly quotes made straight. Not done:
// guessing which wrong encoding a garbled text went through. Ligatures, full-width forms and composition are left to the
// tokenizer's normaliser, which folds them the same way. Plain ASCII only has its white space changed.
std::string clean_prompt(std::string_view prompt);

}  // namespace merope::worker
