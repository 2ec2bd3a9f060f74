"""How the figures write jaxprs: variables named a, b, c, …, and equations in few words."""

from mlax_tutorial.inspection.jaxprs import subjaxprs


class Names:
    """Names variables a, b, c, … as they appear, and writes equations in the notation of JAX's jaxprs."""

    def __init__(self, parameters: bool = True):
        self.known = {}
        self.quiet = _QUIET if parameters else _QUIET | _LONG

    def typed(self, variable) -> str:
        return f"{self.use(variable)}:{type_of(variable.aval)}"

    def use(self, variable) -> str:
        if hasattr(variable, "val"):
            return literal(variable)
        if type(variable).__name__ == "DropVar":
            return "_"
        if variable not in self.known:
            self.known[variable] = letters(len(self.known))
        return self.known[variable]

    def equation(self, equation, indent: str = "") -> str:
        inputs = [self.use(variable) for variable in equation.invars]
        outputs = [self.typed(variable) for variable in equation.outvars]
        inner = list(subjaxprs(equation))
        held = {name.split("[")[0] for name, _ in inner}
        texts = {
            name: _parameter(value)
            for name, value in sorted(equation.params.items())
            if name not in self.quiet | held
        }
        shown = " ".join(f"{name}={text}" for name, text in texts.items() if text)
        params = f"[{shown}]" if shown else ""
        left = f"{' '.join(outputs)} = " if outputs else ""
        text = [f"{indent}{left}{equation.primitive.name}{params} {' '.join(inputs)}".rstrip()]
        for name, jaxpr in inner:
            jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
            names = Names(self.quiet is _QUIET)
            given = " ".join(names.typed(variable) for variable in jaxpr.invars)
            text.append(f"{indent}  {name}: {given}")
            text += [names.equation(each, indent + "    ") for each in jaxpr.eqns]
            text.append(
                f"{indent}    gives {' '.join(names.use(variable) for variable in jaxpr.outvars) or 'nothing'}"
            )
        return "\n".join(text)


# Parameters that say how, not what: left out, as JAX's own notation would fill the page with them.
_QUIET = frozenset(
    "accuracy call_jaxpr_thunk ctx_mesh donated_invars ft_in ft_out fwd_jaxpr_thunk in_layouts in_shardings inline "
    "keep_unused linear num_carry num_consts out_layouts out_sharding out_shardings resource_env sharding split_transpose "
    "symbolic_zeros unroll".split()
)
# And those that few readers ask for, which take more room than the rest of a line: how a product pairs its axes, and with which bits.
_LONG = frozenset("dimension_numbers precision preferred_element_type".split())


def type_of(aval) -> str:
    return aval.str_short(short_dtypes=True) if hasattr(aval, "str_short") else str(aval)


def literal(variable) -> str:
    value = variable.val
    text = (
        f"{float(value):.4g}"
        if getattr(variable.aval, "shape", None) == () and _is_floating(value)
        else str(value)
    )
    if "." not in text and "e" not in text and _is_floating(value):
        text += ".0"
    return f"{text}:{type_of(variable.aval)}"


def _is_floating(value) -> bool:
    return hasattr(value, "dtype") and value.dtype.kind == "f" or isinstance(value, float)


def letters(number: int) -> str:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    return alphabet[number] if number < 26 else letters(number // 26 - 1) + alphabet[number % 26]


def _parameter(value) -> str:
    """A parameter in few words; nothing for what says nothing, or is too long."""
    if value is None or value is False or callable(value) or (isinstance(value, tuple) and not value):
        return ""
    text = str(getattr(value, "name", value))
    return text if len(text) <= 40 and " at 0x" not in text and "\n" not in text else ""
