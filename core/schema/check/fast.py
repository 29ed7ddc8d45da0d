# cython: language_level=3
"""Which documents have no problem, seen in one pass: most of them, and `scan` need not look at those.

Every reachable subschema is read once, keyword by keyword. What is not plainly well-formed and enforceable here may be
so yet: then it is not sure, and `scan` decides, which knows every problem by its place. Places where alternatives fork
are not expanded if an upper bound of what that would take is far from any limit.

Compiled where that is possible (Cython in pure-Python mode); the same file runs interpreted.
"""

from __future__ import annotations

from math import inf

from ...errors import SchemaError, ToolGrammarError
from ..normal.normalise import MAX_BRANCHES, MAX_STEPS, MAX_TOTAL, Normaliser
from ..read.keywords import APPLICATORS, CONSTRAINING, KEYWORDS, REFERENCES, TYPES, Draft, Shape, keywords
from ..read.located import Located, SignedSchema
from ..read.options import SchemaOptions
from ..read.resolve import Document
from ..scalars.bounded_formats import BOUNDED
from ..scalars.formats import ENFORCED, REFUSED
from .exact import MAX_LEAST_PROPERTIES, MAX_LOOSE, is_json, is_small, pattern_problem

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ...compiled import standin as cython  # type: ignore[no-redef]

#: Whether this module was compiled when it was installed.
COMPILED: bool = bool(cython.compiled)

# Shapes of values, as numbers of C.
SCHEMA = cython.declare(cython.int, int(Shape.SCHEMA))
SCHEMAS = cython.declare(cython.int, int(Shape.SCHEMAS))
ALTERNATIVES = cython.declare(cython.int, int(Shape.ALTERNATIVES))
ITEMS = cython.declare(cython.int, int(Shape.ITEMS))
BY_NAME = cython.declare(cython.int, int(Shape.BY_NAME))
BY_PATTERN = cython.declare(cython.int, int(Shape.BY_PATTERN))
DEPENDENCIES = cython.declare(cython.int, int(Shape.DEPENDENCIES))
REQUIREMENTS = cython.declare(cython.int, int(Shape.REQUIREMENTS))
TYPE = cython.declare(cython.int, int(Shape.TYPE))
NAMES = cython.declare(cython.int, int(Shape.NAMES))
VALUES = cython.declare(cython.int, int(Shape.VALUES))
VALUE = cython.declare(cython.int, int(Shape.VALUE))
UPPER_COUNT = cython.declare(cython.int, int(Shape.UPPER_COUNT))
LOWER_COUNT = cython.declare(cython.int, int(Shape.LOWER_COUNT))
BOUND = cython.declare(cython.int, int(Shape.BOUND))
STEP = cython.declare(cython.int, int(Shape.STEP))
PATTERN = cython.declare(cython.int, int(Shape.PATTERN))
FORMAT = cython.declare(cython.int, int(Shape.FORMAT))
FLAG = cython.declare(cython.int, int(Shape.FLAG))
REFERENCE = cython.declare(cython.int, int(Shape.REFERENCE))
ADDRESS = cython.declare(cython.int, 30)
KIND = cython.declare(cython.int, 31)
# What else there is to know of a keyword.
UNKNOWN = cython.declare(cython.int, 32)  # to the dialect: its value must be well-formed, and means nothing
FORKS = cython.declare(cython.int, 64)
NEGATES = cython.declare(cython.int, 128)
NOT_NEGATABLE = cython.declare(cython.int, 256)
CONDITIONAL = cython.declare(cython.int, 512)  # it means nothing without ``if``
EXCLUDES = cython.declare(cython.int, 1024)  # it is ``oneOf``
DYNAMIC = cython.declare(cython.int, 2048)  # what it refers to depends on the way to it


def _table(draft: Draft) -> dict[str, int]:
    """Return what this module needs to know of the keywords of a draft."""
    result = {}
    for row in KEYWORDS.values():
        if row.name not in CONSTRAINING:
            continue
        is_dynamic = row.name in REFERENCES and row.name != "$ref"
        if is_dynamic and not row.is_in(draft):
            continue
        result[row.name] = (
            row.shape
            | (0 if row.is_in(draft) else UNKNOWN)
            | (FORKS if row.forks else 0)
            | (NEGATES if row.negates else 0)
            | (0 if row.negatable else NOT_NEGATABLE)
            | (CONDITIONAL if row.name in ("then", "else") else 0)
            | (EXCLUDES if row.name == "oneOf" else 0)
            | (DYNAMIC if is_dynamic else 0)
        )
    result["$id" if draft else "id"] = ADDRESS
    return result


_TABLES = [_table(draft) for draft in Draft]
_TYPES = frozenset((*TYPES, "integer", "any"))
_SCALARS = frozenset((str, int, bool, type(None)))

#: Keywords that make alternatives in ways that are not counted here.
_UNCOUNTED = APPLICATORS.difference(REFERENCES, keywords(shapes=(Shape.ALTERNATIVES,)))

#: Recursion limit of the estimate of alternatives.
_MAX_DEPTH = 64


def is_surely_sound(document: Document, options: SchemaOptions) -> bool:
    """Whether `toolgrammar.core.schema.check.exact.problems` finds nothing in a document (False: perhaps it does).

    Law: what is surely sound has no problems.
    """
    return not document.dynamic and document.registry is None and _Pass(document, options).run()


@cython.cclass
class _Pass:
    """One pass over a document."""

    document: object
    options: object
    normaliser: object
    # kinds of keywords in this dialect
    table: dict
    # whether keywords beside $ref are ignored
    hides: cython.bint
    # subschemas that are still to be read, and the ids of those that were
    todo: list
    seen: set
    # subschemas that make alternatives
    forks: list
    # subschemas with oneOf, and by their ids whether some options may hold at once
    unions: list
    overlapping: dict
    # what each reference leads to
    targets: dict
    # what the alternatives of a subschema take: see `_counted`
    counts: dict
    # how many steps all expansions may take
    steps: cython.longlong
    # see `Document.entries`
    entries: cython.longlong

    def __init__(self, document: Document, options: SchemaOptions) -> None:
        self.document = document
        self.options = options
        self.normaliser = None
        self.table = _TABLES[document.age]
        self.hides = document.ref_hides_siblings
        self.todo = [document.schema]
        self.seen = set()
        self.forks = []
        self.unions = []
        self.overlapping = {}
        self.targets = {}
        self.counts = {}
        self.steps = 0
        self.entries = 0

    def run(self) -> bool:
        """Whether the document surely has no problem."""
        flags: cython.int = 0
        here: cython.int
        while self.todo:
            schema = self.todo.pop()
            if schema is True or schema is False:
                continue
            if type(schema) is not dict:
                return False
            if id(schema) in self.seen:
                continue
            self.seen.add(id(schema))
            here = self._read(schema)
            if here < 0:
                return False
            flags |= here
        self.document.entries = self.entries
        try:
            if self._excludes():
                flags |= NEGATES
            # Whether items differ cannot be negated: what is asked of them must be seen with its sign.
            return not (flags & NOT_NEGATABLE and flags & NEGATES) and self._forks_are_small()
        except ToolGrammarError:
            return False

    @cython.cfunc
    def _read(self, schema: dict) -> cython.int:
        """What the keywords of a subschema are, as flags; -1 if one may be a problem. Its subschemas are to be read."""
        flags: cython.int = 0
        kind: cython.int
        what: cython.int
        todo: list = self.todo
        before: cython.Py_ssize_t = len(todo)
        self.entries += len(schema)
        for keyword, value in schema.items():
            found = self.table.get(keyword)
            if found is None:
                continue
            kind = found
            what = kind & KIND
            if what == TYPE:
                if type(value) is str:
                    if value not in _TYPES:
                        return -1
                elif type(value) is not list or not _are_names(value) or not _TYPES.issuperset(value):
                    return -1
            elif what == BY_NAME or what == BY_PATTERN:
                if type(value) is not dict:
                    return -1
                for name in value:
                    if type(name) is not str or (what == BY_PATTERN and pattern_problem(name) is not None):
                        return -1
                if not kind & UNKNOWN:
                    todo.extend(value.values())
            elif what == SCHEMA or (what == ITEMS and type(value) is not list):
                if type(value) is not dict and type(value) is not bool:
                    return -1
                if not kind & UNKNOWN and (not kind & CONDITIONAL or "if" in schema):
                    todo.append(value)
            elif what == ALTERNATIVES or what == SCHEMAS or what == ITEMS:
                if type(value) is not list or (what == ALTERNATIVES and not value):
                    return -1
                if not kind & UNKNOWN:
                    todo.extend(value)
            elif what == NAMES:
                if type(value) is not list or not _are_names(value):
                    return -1
                self.entries += len(value)
            elif what == VALUES or what == VALUE:
                if what == VALUES:
                    if type(value) is not list:
                        return -1
                    self.entries += len(value)
                compounds: cython.Py_ssize_t = 0
                for each in value if what == VALUES else (value,):
                    if type(each) is int:
                        if not is_small(each):
                            return -1
                    elif type(each) not in _SCALARS:
                        compounds += 1
                        if compounds > MAX_LOOSE or not is_json(each) or not is_small(each):
                            return -1
            elif what == UPPER_COUNT or what == LOWER_COUNT:
                if type(value) is not int or value < 0 or (what == LOWER_COUNT and value > MAX_LEAST_PROPERTIES):
                    return -1
                if not is_small(value):
                    return -1
            elif what == BOUND:
                if type(value) is float:
                    if not -inf < value < inf:
                        return -1
                elif (type(value) is not int or not is_small(value)) and type(value) is not bool:
                    return -1
            elif what == STEP:
                if (type(value) is not int and type(value) is not float) or not 0 < value < inf:
                    return -1
                if not is_small(value):
                    return -1
            elif what == PATTERN:
                if type(value) is not str or pattern_problem(value) is not None:
                    return -1
            elif what == FORMAT:
                if type(value) is not str or not self._may_be_format(value):
                    return -1
            elif what == FLAG:
                if type(value) is not bool:
                    return -1
                if value is False:
                    continue
            elif what == DEPENDENCIES or what == REQUIREMENTS:
                if type(value) is not dict or not self._depend(what, value, not kind & UNKNOWN):
                    return -1
            elif what == REFERENCE:
                if kind & DYNAMIC or type(value) is not str:
                    return -1
            elif what == ADDRESS:
                # What references mean changes where a subschema has an address of its own.
                if schema is not self.document.schema and self.document.is_resource(schema):
                    return -1
                continue
            else:
                return -1
            if not kind & UNKNOWN:
                flags |= kind
        if "$ref" in schema:
            target = self._target(schema["$ref"])
            if target is None:
                return -1
            if self.hides:
                del todo[before:]
                todo.append(target)
                return 0
            todo.append(target)
        if flags & FORKS:
            self.forks.append(schema)
            if flags & EXCLUDES:
                self.unions.append(schema)
        return flags

    @cython.cfunc
    def _may_be_format(self, name: str) -> cython.bint:
        """Whether a format is enforced, or an annotation."""
        options = self.options
        if name in REFUSED or name in BOUNDED:
            return not options.formats
        return not options.formats or name in ENFORCED or not options.strict_formats

    @cython.cfunc
    def _depend(self, what: cython.int, needs: dict, known: cython.bint) -> cython.bint:
        """Whether what members depend on is well-formed: names, or a schema, which is to be read."""
        for needed in needs.values():
            if type(needed) is list:
                if not _are_names(needed):
                    return False
            elif what == REQUIREMENTS or (type(needed) is not dict and type(needed) is not bool):
                return False
            elif known:
                self.todo.append(needed)
        return True

    @cython.cfunc
    def _target(self, reference: str) -> object:
        """The subschema that a reference leads to; None: perhaps there is none."""
        found = self.targets.get(reference)
        if found is None and (reference == "#" or reference.startswith("#/")):
            try:
                located = self.document.resolve(Located({"$ref": reference}), "$ref")
            except SchemaError:
                return None
            if located.scope is None:
                found = self.targets[reference] = located.schema
        return found

    # -- alternatives ------------------------------------------------------------------------------------------

    @cython.cfunc
    def _excludes(self) -> cython.bint:
        """Whether some ``oneOf`` has options that may hold at once, so that some of them must not."""
        found: cython.bint = False
        for schema in self.unions:
            kinds: set = set()
            overlap: cython.bint = False
            for option in schema["oneOf"]:
                some = _types(option)
                if some is None or not kinds.isdisjoint(some):
                    overlap = len(schema["oneOf"]) > 1
                    break
                kinds.update(some)
            if overlap:
                overlap = any(self._normaliser().overlaps(Located(schema)))
            self.overlapping[id(schema)] = overlap
            found = found or overlap
        return found

    def _normaliser(self) -> Normaliser:
        """Expands what cannot be counted."""
        if self.normaliser is None:
            self.normaliser = Normaliser(
                self.document, formats=self.options.formats, open_objects=self.options.additional_properties
            )
        found: Normaliser = self.normaliser
        return found

    @cython.cfunc
    def _forks_are_small(self) -> cython.bint:
        """Whether no expansion of a subschema comes to a limit."""
        for schema in self.forks:
            count = self._counted(schema, 0)
            if count is None or count[1] > MAX_BRANCHES or count[0] + count[1] > MAX_STEPS:
                self._normaliser().branches((SignedSchema(Located(schema)),))
            else:
                self.steps += count[0] + count[1]
        return self.steps + (0 if self.normaliser is None else self.normaliser.steps) <= MAX_TOTAL

    @cython.cfunc
    def _counted(self, schema: object, depth: cython.int) -> tuple:
        """How many steps it takes at most to expand a subschema, and to how many alternatives (None: not known).

        Expanding alternatives means going on from each with what else must hold.
        """
        if type(schema) is bool:
            return 1, 1
        if id(schema) in self.counts:
            return self.counts[id(schema)]
        if depth > _MAX_DEPTH or not _UNCOUNTED.isdisjoint(schema) or self.overlapping.get(id(schema)):
            return None
        self.counts[id(schema)] = None  # while it is in progress: it refers to itself
        steps: cython.longlong = 1
        alternatives: cython.longlong = 1
        parts: list = []
        if "$ref" in schema:
            parts.append(self._counted(self._target(schema["$ref"]), depth + 1))
        if "$ref" not in schema or not self.hides:
            parts += [self._counted(each, depth + 1) for each in schema.get("allOf", ())]
            for keyword in ("oneOf", "anyOf"):
                if keyword in schema:
                    parts.append(self._either([self._counted(each, depth + 1) for each in schema[keyword]]))
        for part in parts:
            if part is None:
                return None
            steps += alternatives * part[0]
            alternatives *= part[1]
            if steps > MAX_TOTAL or alternatives > MAX_TOTAL:
                return None
        found = self.counts[id(schema)] = (steps, alternatives)
        if self.overlapping.get(id(schema)) is not None:  # and its options once, to see that they are disjoint
            self.steps += steps + alternatives
        return found

    @cython.cfunc
    def _either(self, options: list) -> tuple:
        """The same of an alternative of some."""
        steps: cython.longlong = 1
        alternatives: cython.longlong = 0
        for option in options:
            if option is None:
                return None
            steps += option[0] + 1  # one more where an option of oneOf is a formula of its own
            alternatives += option[1]
        return steps, alternatives


@cython.cfunc
def _are_names(values: list) -> cython.bint:
    """Whether all of a list are strings."""
    for each in values:
        if type(each) is not str:
            return False
    return True


@cython.cfunc
def _types(option: object) -> set:
    """The types of the values that an option takes, as far as it says so itself (None: it does not)."""
    if type(option) is not dict or "type" not in option or "$ref" in option or option.get("nullable") is True:
        return None
    kinds = option["type"]
    found: set = {kinds} if type(kinds) is str else set(kinds)
    if "any" in found:
        return None
    if "integer" in found:
        found.add("number")
    return found
