"""Final answers of mathematical problems: read by a fixed grammar, compared by their values.

`clean` drops what only changes how an answer looks, `lexer` and `parser` turn it into a `tree`,
`values` computes trees within fixed bounds, `forms` and `regions` see lists, labels, intervals,
and `equal` compares two trees. `figures` and `words` decide the common cases without any of that.
Nothing here runs text as code, and nothing is computed whose size isn't known before.
"""
