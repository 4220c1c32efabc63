"""Small templates, one construct each, that real templates use. Rendered with CONTEXT by both sides."""

CONTEXT = {
    "text": "  Hello, Wörld! ",
    "mail": "a@b.c",
    "number": 7,
    "real": 2.5,
    "tiny": 1e-05,
    "big": 1e16,
    "large": 123456789012345680.0,
    "whole": 2.0,
    "negative": -7,
    "truth": True,
    "nothing": None,
    "empty": "",
    "list": [3, 1, 2],
    "words": ["b", "A", "c", "B"],
    "nested": [[1, 2], [3, [4, None, True, 1.5]]],
    "map": {"z": 1, "a": {"b": [1, 2.0, None, True, "x'y"]}, "items": "shadow", "k\n": "v\t"},
    "quotes": ["it's", 'say "hi"', "both ' and \"", "back\\slash", "new\nline", "\u00a0\u200b\x00\x7f😸é\u2028"],
    "people": [
        {"name": "Bo", "age": 3, "tags": ["x"]},
        {"name": "al", "age": 30, "tags": []},
        {"name": "Cy", "age": 3},
    ],
    "html": "<b>&\"'</b>",
    "cmp": {
        "name": "cmp",
        "description": "a < b & c > d — it's \"q\" / é",
        "parameters": {
            "type": "object",
            "properties": {"z": {"type": "number"}, "a": {"type": "array", "items": [1, 2.0, True, None]}},
        },
    },
}

EXPRESSIONS = """
'abcdef'[1:-1]
'abcdef'[::2]
'abcdef'[::-1]
'abcdef'[-2:]
'abcdef'[10:]
'abcdef'[4:1:-1]
[1,2,3,4][-2:]
[1,2,3,4][::-1]
[1,2,3,4][1:3]
(1,2,3)[1:]
nothing[1:]
map[1:]
missing[1:]
[3, 1]|min
[3, 1]|max
words|min
words|max
[]|min
people|max(attribute='age')
7 // 2
-7 // 2
-7 % 3
7 / 2
4 / 2
7 % -3
7.5 // 2
-7.5 % 2
2 ** 10
2 ** -1
2 ** 0.5
1 / 0
1 % 0
1 + true
'a' ~ 1 ~ none
'a' ~ 1.0 ~ true ~ [1, 'x'] ~ missing
true
none
1.0
{'a': true}
[none, true, 1.0, 'x', missing]
{'a': {'b': [1, (2,), (3, 4), ()]}}
tiny
big
large
whole
[tiny, big, large, whole, 0.1, 100000.0, 1e22, 123456.789]
1e5
1_000
quotes
quotes[5]
map
nested
text.strip()
text.lstrip() ~ '|'
text.rstrip() ~ '|'
text.upper()
text.lower()
text.title()
text|title
text|capitalize
text.strip().capitalize()
'xxabcxx'.strip('x')
'xyabcyx'.lstrip('yx')
'abc'.rstrip('c')
'\\n\\t a\\x1c'.strip()
'a,b,,c'.split(',')
'a,b,,c'.split(',', 1)
'a,b,,c'.rsplit(',', 1)
' a  b c '.split()
' a  b c '.split(none, 1)
' a  b c '.rsplit(none, 1)
'a b c'.split(' ', maxsplit=1)
''.split()
''.split(',')
'a\\nb\\r\\nc\\n'.splitlines()
'a\\nb'.splitlines(true)
'x</think>\\n\\nans'.split('</think>')[-1].lstrip('\\n')
'abc'.startswith('ab')
'abc'.startswith(('x', 'a'))
'abc'.endswith('bc')
'abc'.endswith(('x', 'c'))
'abc'.startswith('b', 1)
'banana'.replace('a', 'o')
'banana'.replace('a', 'o', 2)
'banana'|replace('a', 'o', 1)
'banana'.find('n')
'banana'.rfind('n')
'banana'.find('x')
'banana'.index('n')
'banana'.index('x')
'banana'.count('an')
'Wörld'.find('l')
'-'.join(['a', 'b'])
'-'.join([1, 2])
', '.join(words)
'12'.isdigit()
'ab1'.isalnum()
'ab'.isalpha()
'  '.isspace()
'AB'.isupper()
'ab'.islower()
'{} and {}'.format(1, 'x')
'{0}{1}{0}'.format('a', none)
'{name} {n:>5}|{f:.2f}'.format(name='N', n=3, f=2.345)
'{:05d} {:<4}| {:^7}|'.format(42, 'ab', 'mid')
'%s is %d and %.2f %r %%' % ('x', 3.7, 2.0, 'y')
'%s' % none
'%(a)s-%(b)05d' % {'a': 1, 'b': 2}
'%s %s'|format('a', true)
'a'.center(5) ~ '|'
'7'.zfill(3)
'-7'.zfill(4)
'ab'.ljust(4, '.')
'k=v=w'.partition('=')
'k=v=w'.rpartition('=')
'prefix-x'.removeprefix('prefix-')
'x.py'.removesuffix('.py')
'aBc'.swapcase()
'straße'.upper()
'ab' 'cd'
"a\\tb\\u00e9\\x41\\'"
'\\d\\s\\/'
'abc'[0]
'abc'[-1]
'abc'[5]
'Wörld'|length
'👨‍👩‍👧'|length
list[0]
list[-1]
list[9]
list['x']
map['z']
map.z
map.a.b[1]
map.missing
map.missing.x
map['missing']['x']
missing
missing.x
missing['x']
missing()
none.x
none['x']
number.x
map['items']
map.items()|list
map.keys()|list
map.values()|list
map.keys()
map.items()
map.get('z')
map.get('q')
map.get('q', 'd')
map.get('a').b
map.copy().z
map.update({'x': 1})
map.pop('z')
list.append(4)
list.index(2)
list.count(3)
list.pop()
'x' in 'xyz'
'z' in map
'q' in map
1 in list
9 not in list
'x' in missing
'x' in none
1 in 'abc'
1 == true
1 == 1.0
'1' == 1
none == missing
missing == missing
[1, 2] == [1, 2]
(1, 2) == [1, 2]
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
1 < 2 < 3
1 < 2 > 5
'a' < 'b'
'a' < 1
none < 1
missing < 1
[1, 2] < [1, 3]
not missing
not []
not ''
1 if missing else 2
(1 if missing) ~ '|'
missing or 'x'
'' or 0 or 'last'
1 and 2
0 and 2
1 + 1.5
'a' + 'b'
'a' + 1
1 + 'a'
missing + 'a'
none + 'a'
[1] + [2]
(1,) + (2,)
'ab' * 3
[1] * 2
2 * 'ab'
-number
-text
-2 ** 2
+5
text|trim
text|trim|length
'xxaxx'|trim('x')
none|trim
5|trim
text|string
none|string
none|upper
true|lower
1.0|string
list|join
list|join('-')
nested|join(',')
[none, true, 1.5]|join(' ')
people|join(', ', attribute='name')
'abc'|join('.')
list|first
list|last
[]|first
'abc'|first
'abc'|last
list|sort
list|sort(reverse=true)
words|sort
words|sort(case_sensitive=true)
people|sort(attribute='age')|map(attribute='name')|list
people|sort(attribute='age,name')|map(attribute='name')|list
[1, 'a']|sort
list|reverse|list
'abc'|reverse
list|length
map|length
missing|length
none|length
5|length
(list|map('string'))|length
list|map('string')|list
words|map('upper')|join
people|map(attribute='name')|list
people|map(attribute='tags', default='none')|list
people|map(attribute='tags.0')|list
words|select('equalto', 'b')|list
list|select('odd')|list
list|reject('odd')|list
list|select|list
[0, 1, '', 'x']|select|list
people|selectattr('age', 'equalto', 3)|list|length
people|selectattr('tags')|map(attribute='name')|list
people|rejectattr('tags', 'defined')|map(attribute='name')|list
people|selectattr('age', 'gt', 5)|first
people|selectattr('role', 'equalto', 'user')|list
(people|selectattr('age', 'equalto', 99)) is defined
'yes' if people|selectattr('age', 'equalto', 99) else 'no'
people|groupby('age')|map('first')|list
list|sum
people|sum(attribute='age')
['a']|sum
list|unique|list
['a', 'A', 'b', 'a']|unique|list
map|dictsort
{'b': 1, 'A': 2, 'c': 0}|dictsort
{'b': 1, 'A': 2, 'c': 0}|dictsort(true)
{'b': 1, 'A': 2, 'c': 0}|dictsort(false, 'value')
map|items|list
missing|items|list
5|items|list
map|list
'abc'|list
none|list
list|batch(2)|list
list|batch(2, 'x')|list
missing|default('d')
empty|default('d')
empty|default('d', true)
none|default('d')
none|default('d', boolean=true)
missing|d
'7'|int
'7.9'|int
'x'|int
'x'|int(5)
'ff'|int(0, 16)
3.9|int
-3.9|int
true|int
none|int
'2.5'|float
'x'|float
3|float
-3|abs
-3.5|abs
2.5|round
3.5|round
2.567|round(2)
2.567|round(1, 'floor')
2.1|round(0, 'ceil')
7|round
1234|round(-2)
html|escape
html|e
html|safe
html|escape|length
(html|escape) ~ '<'
(html|escape) + '<'
html|forceescape
'a\\nb\\n\\nc'|indent
'a\\nb\\n\\nc'|indent(2, true)
'a\\nb\\n\\nc'|indent(2, first=true, blank=true)
'a\\nb'|indent('>>')
'one two'|wordcount
'a'|center(5) ~ '|'
map|tojson
cmp|tojson
cmp|tojson(indent=2)
cmp|tojson(indent=4)
cmp|tojson(separators=(',', ':'))
cmp|tojson(ensure_ascii=true)
cmp|tojson(sort_keys=true)
cmp|tojson(ensure_ascii=False, indent=2, separators=(',', ': '), sort_keys=True)
[]|tojson
{}|tojson(indent=2)
[[], {}]|tojson(indent=1)
'é"\\\\/\\n\\u2028</script>'|tojson
'😸'|tojson(ensure_ascii=true)
none|tojson
true|tojson
1.0|tojson
[tiny, big, whole]|tojson
(1, 2)|tojson
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
missing|tojson
[missing]|tojson
map.items()|tojson
(list|map('string'))|tojson
quotes|tojson
text is string
map is mapping
map is sequence
list is sequence
text is sequence
map is iterable
text is iterable
5 is iterable
none is iterable
missing is iterable
list is iterable
5 is number
true is number
true is boolean
1 is boolean
5 is integer
true is integer
5.0 is float
5.0 is integer
none is none
missing is none
missing is defined
missing is undefined
map.z is defined
map.q is defined
map.items is defined
3 is odd
4 is even
9 is divisibleby 3
9 is divisibleby(3)
1 is eq 1
1 is equalto 1.0
'a' is in 'abc'
2 is in [1, 2]
5 is gt 3
5 is not lt 3
none is sameas none
true is true
1 is true
false is false
range is callable
text is callable
map.get is callable
'abc' is upper
'abc' is lower
'b' is not in ['a']
range(5)|list
range(2, 8, 3)|list
range(5, 0, -2)|list
range(3)
range(1, 3)
range(200000)
dict(a=1, b='x')
dict([('a', 1)])
dict(map, extra=1).extra
namespace(a=1).a
namespace(a=1).b
strftime_now('%d %b %Y %H:%M')
strftime_now('%Y-%m-%d')
strftime_now('')
strftime_now('%A %e %j %% %f|%z|%Z')
raise_exception('no: ' ~ number)
[1, 2, 3]|random|string|length
'a' if true else 'b' if false else 'c'
(1, 'a', none)
(1,)
()
{'a': 1}['a']
{'a': 1}.a
{1: 'one'}[1]
{'a': 1, **map}
[x for x in list]
list[0:2][1]
text[2:7]
'%d' % 'x'
'a' == 'a' and 1 in [1] and not false
'abc'|replace('', '-')
'αβγ'|upper
'ΑΣ'.lower()
'İ'.lower()
'ǆ'.title()
number|tojson ~ real|tojson
{'b': 2}|string ~ [1]|string
"it's" ~ 'say "x"'
['it\\'s']
['tab\\t', 'nl\\n', 'bell\\x07', 'é', '\\u200b']
'x'|foo
x|length is foo
map|attr('z')
mail.split('@')|last
(people|first).name
people[0].tags[0]
people[0]['name'][0]
people|map(attribute='age')|sum
people|map('length')|list
'a;b'.split(';')|map('upper')|list|tojson
[1,2,3]|slice(2)|list
'long text here'|truncate(8)
'a b'|urlencode
'<p>x</p>'|striptags
1000000|filesizeformat
{'class': 'x'}|xmlattr
map|pprint
[[1, 2], [3, 4]]|map('sum')|list
0.1 + 0.2
1e308 * 10
-1e308 * 10
10 ** 20
9007199254740993 + 0
0x1F
0b101
0o17
1e-7
100 // 7.0
""".strip("\n").split("\n")

TEMPLATES = {
    "scoping": "{% set x = 1 %}{% for i in [1,2] %}{% set x = x + i %}{% endfor %}{{ x }}",
    "namespace": "{% set ns = namespace(x=1) %}{% for i in [1,2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "lstrip": "  {% if true %}\n    A\n  {% endif %}\nB\n",
    "crlf": "a\r\n{% if true %}\r\nb\r\n{% endif %}\r\nc\rd\r\n",
    "trailing_newlines": "a\n\n\n",
    "minus": "a  {%- if true -%}  b  {%- endif -%}  c",
    "plus": "a\n  {%+ if true +%}\n  b\n  {%+ endif %}\nc",
    "comment": "a {# x #}\n  {#- y -#}  b {# {{ no }} #}c",
    "comment_line": "a\n  {# own line #}\nb",
    "raw": "{% raw %}{{ x }}\n{% y %}{% endraw %}z",
    "raw_minus": "a {%- raw -%} {{ x }} {%- endraw -%} b",
    "break": "{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "continue": "{% for i in range(5) %}{% if i is odd %}{% continue %}{% endif %}{{ i }},{% endfor %}",
    "loop_variables": "{% for i in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}"
    "{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}|{% endfor %}",
    "loop_neighbours": "{% for i in list %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }};{% endfor %}",
    "loop_previtem_defined": "{% for i in list %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "loop_cycle": "{% for i in list %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "loop_changed": "{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %}",
    "loop_else": "{% for i in [] %}x{% else %}none{% endfor %}",
    "loop_filter": "{% for i in list if i > 1 %}{{ loop.index }}{{ i }}{{ loop.last }}{% endfor %}",
    "loop_missing": "{% for i in missing %}x{% else %}none{% endfor %}",
    "loop_none": "{% for i in none %}x{% else %}none{% endfor %}",
    "loop_string": "{% for c in 'aé😸' %}{{ c }}.{% endfor %}",
    "loop_number": "{% for c in 5 %}{{ c }}{% endfor %}",
    "loop_dict": "{% for k in map %}{{ k }},{% endfor %}{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}",
    "loop_items_filter": "{% for k, v in map|items %}{{ k }}={{ v }};{% endfor %}",
    "loop_dictsort": "{% for k, v in map|dictsort %}{{ k }}={{ v }};{% endfor %}",
    "loop_unpack": "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "loop_unpack_wrong": "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
    "loop_recursive": "{% for x in [[1, [2]], [3]] recursive %}"
    "{% if x is iterable %}<{{ loop(x) }}>{% else %}{{ x }}{% endif %}{% endfor %}",
    "loop_reversed": "{% set ns = namespace(last=-1) %}{% for m in people[::-1] %}"
    "{% if m.age == 30 and ns.last < 0 %}{% set ns.last = people|length - 1 - loop.index0 %}{% endif %}{% endfor %}{{ ns.last }}",
    "loop_generator": "{% set g = list|map('string') %}{% for x in g %}{{ x }}{% endfor %}-{% for x in g %}{{ x }}{% endfor %}",
    "macro": "{% macro m(a, b='B', c=none) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, c=2) }}{{ m() }}",
    "macro_scope": "{% set x = 1 %}{% macro m() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ m() }}",
    "macro_recursion": "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "macro_varargs": "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}",
    "macro_caller": "{% macro m(x) %}<{{ caller(x) }}>{% endmacro %}{% call(y) m(1) %}in{{ y }}{% endcall %}",
    "macro_result": "{% macro m() %} a {% endmacro %}{{ m()|trim }}{{ m() is string }}{{ m()|length }}",
    "macro_too_many": "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "set_block": "{% set x %}a{{ 1 }}b{% endset %}[{{ x }}]{{ x is string }}",
    "set_block_filter": "{% set x | upper %}ab{% endset %}{{ x }}",
    "set_tuple": "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set t = 1, 2 %}{{ t }}",
    "set_if": "{% if true %}{% set x = 1 %}{% endif %}{{ x }}",
    "with": "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "filter_block": "{% filter upper %}ab{{ 'c' }}{% endfilter %}",
    "do": "{% do list %}x",
    "if_chain": "{% if false %}a{% elif 0 %}b{% elif none is none %}c{% else %}d{% endif %}",
    "generation": "a{% generation %}b{{ 1 }}{% endgeneration %}c",
    "generation_trim": "a\n  {%- generation %}\nb\n{%- endgeneration -%}\n c",
    "generation_scope": "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}",
    "generation_in_loop": "{% for m in people %}{% generation %}{{ m.name }}{{ loop.index }}{% endgeneration %},{% endfor %}",
    "generation_text": "{{ '{% generation %}' }}{# {% generation %} #}",
    "block": "{% block b %}x{{ number }}{% endblock %}{{ self.b() }}",
    "include": "{% include 'x' %}",
    "autoescape": "{% autoescape true %}{{ html }}{% endautoescape %}",
    "brace_text": "{ {{ 1 }} } {a} {{ '}}' }} {{ {'a': {'b': 1}}['a'] }} {{ '{%' }}",
    "string_newline": "{{ 'a\nb' }}",
    "string_continued": "{{ 'a\\\nb' }}",
    "unicode_names": "{% set größe = 1 %}{{ größe }}",
    "exception": "a\nb\n{{ raise_exception('stop here') }}",
    "syntax": "a\n{% if %}",
    "unclosed": "a\n{% if true %}b",
    "unknown_tag": "{% foo %}",
    "unknown_filter_unused": "{% if false %}{{ 1|nofilter }}{% endif %}ok",
    "private": "{{ map.__class__ }}{{ ''.__class__.__mro__ }}",
    "private_item": "{{ ''['__class__'] }}|{{ map._x }}",
    "namespace_print": "{% set ns = namespace(a=1) %}{{ ns.a }}{% set ns.b = [1] %}{{ ns.b }}",
    "namespace_in_namespace": "{% set a = namespace(x=1) %}{% set b = namespace() %}{% set b.a = a %}{{ b.a.x }}",
    "namespace_from_namespace": "{% set a = namespace(x=1) %}{% set b = namespace(a=a) %}{{ b.a.x }}",
    "namespace_items": "{% set ns = namespace() %}{% set ns.items = [1] %}{{ ns.items }}",
    "map_method_names": "{{ {'get': 1, 'keys': 2}.get('get') }}{{ {'values': [1]}['values'] }}{{ {'x': {'items': 3}}.x['items'] }}",
    "iter_set": "{% set keys = map.keys() %}{{ keys|length }}{{ keys|list }}{{ 'z' in keys }}",
    "condition_list": "{% if [] %}a{% endif %}{% if [0] %}b{% endif %}{% if {} %}c{% endif %}{% if 0.0 %}d{% endif %}",
    "missing_chain": "{% if missing is defined and missing.x %}a{% else %}b{% endif %}",
    "missing_in_list": "{{ [missing]|length }}{{ missing|list }}{{ missing|string }}|",
    "inline_for_else_break": "{% for x in list %}{% break %}{% else %}e{% endfor %}",
    "whitespace_lines": "a\n\n  {% set x = 1 %}  \n\nb",
    "block_at_end": "a\n{% if true %}b{% endif %}\n",
    "variable_line": "  {{ 1 }}\n  {{ 2 }}\n",
    "tabs": "\t{% if true %}\t\nx\t{% endif %}\t\n",
}
