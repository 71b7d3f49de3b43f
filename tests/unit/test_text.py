# SPDX-License-Identifier: Apache-2.0
"""Names and numbers in sentences."""

from cases import cases
import pytest

from isolate_aggregates import text


@cases(
    ('given', 'shown'),
    {
        'what can be seen': ('für ☃ a\\b', 'für ☃ a\\b'),
        'line breaks': ('a\nb\r\tc', r'a\nb\r\tc'),
        'C0': ('\x1b[31m\x00\x7f', r'\x1b[31m\x00\x7f'),
        'C1': ('\x85\x9b', r'\x85\x9b'),
        'separators': ('\u2028\u2029', r'\u2028\u2029'),
        'directions': ('\u202e\u2066', r'\u202e\u2066'),
        'half of a character': ('\ud800', r'\ud800'),
    },
)
def test_every_character_is_made_visible(given, shown):
    assert text.escaped(given) == shown


@pytest.mark.parametrize(
    ('name', 'shown'),
    [
        ('debian-12', 'debian-12'),
        ('reservation:4d17', 'reservation:4d17'),
        ('größe_2', 'größe_2'),
        ('Windows 2022', "'Windows 2022'"),
        ('x, which opens all', "'x, which opens all'"),
        ("it's", '"it\'s"'),
        ('a;b', "'a;b'"),
        ('a\nb', r"'a\nb'"),
        ('', "''"),
    ],
)
def test_names_that_are_no_single_word_are_quoted(name, shown):
    assert text.quoted(name) == shown


@cases(
    ('names', 'most', 'expected'),
    {
        'one': (['a'], 5, 'a'),
        'sorted': (['c', 'a', 'b'], 5, 'a, b, c'),
        'as-many-as-shown': ('abcde', 5, 'a, b, c, d, e'),
        'one-more': ('abcdef', 5, 'a, b, c, d, e and 1 more'),
        'only-one-shown': ('abc', 1, 'a and 2 more'),
        'all': ('gfedcba', None, 'a, b, c, d, e, f, g'),
    },
)
def test_names_are_sorted_and_the_rest_is_counted(names, most, expected):
    assert text.listed(iter(names), most) == expected


@cases(
    ('names', 'expected'),
    {
        'one': (['a'], 'host a'),
        'two': (['b', 'a'], 'hosts a, b'),
        'many': ('abcdefg', 'hosts a, b, c, d, e and 2 more'),
    },
)
def test_names_follow_their_noun(names, expected):
    assert text.named('host', iter(names)) == expected


@cases(
    ('number', 'noun', 'verb'),
    {
        'none': (0, '0 hosts', 'have'),
        'one': (1, '1 host', 'has'),
        'two': (2, '2 hosts', 'have'),
    },
)
def test_words_agree_with_a_number(number, noun, verb):
    assert text.counted(number, 'host') == noun
    assert text.plural(number, 'has', 'have') == verb


ODD_PASSWORDS = pytest.mark.parametrize(
    'password', ['pw', 'p@w', 'p/w', 'p@/w', 'p?w', 'p#w', 'p:w', "p'w", '@']
)


@ODD_PASSWORDS
def test_urls_in_a_message_have_no_passwords(password):
    url = f'http://user:{password}@nova.test:8774/v2.1'
    assert text.public(f'Calling {url} failed, ask a@b.test') == (
        'Calling http://nova.test:8774/v2.1 failed, ask a@b.test'
    )
    assert text.short(f'{url} {url}.') == (
        'http://nova.test:8774/v2.1 http://nova.test:8774/v2.1'
    )


@ODD_PASSWORDS
@pytest.mark.parametrize('more', ['', ' ', '\n', ' @'])
def test_a_url_has_no_password(password, more):
    url = f'http://user:{password}{more}@nova.test:8774/v2.1'
    assert text.public_url(url) == 'http://nova.test:8774/v2.1'
