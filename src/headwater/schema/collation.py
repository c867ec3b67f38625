"""Names of Spark's collations, so that a misspelt one is refused without asking Spark."""

from __future__ import annotations

BINARY = "UTF8_BINARY"

_LOCALES = """
    af am ar ar_SAU as az be bg blo bn bo br bs bs_Cyrl ca ceb chr cs cy da de de_AUT dsb dz ee el en
    en_USA eo es et fa fa_AFG ff ff_Adlm fi fil fo fr fr_CAN fy ga gl gu ha haw he he_ISR hi hr hsb hu hy
    id id_IDN ig is it ja ka kk kk_Arab kl km kn ko kok ku ky lb lij lkt ln lo lt lv mk ml mn mr ms mt my
    nb nb_NOR ne nl nn no nso om or pa pa_Guru pa_Guru_IND pl ps pt ro ru sa se si sk sl smn sq sr sr_Cyrl
    sr_Cyrl_BIH sr_Cyrl_MNE sr_Cyrl_SRB sr_Latn sr_Latn_BIH sr_Latn_SRB st sv sw ta te th tk tn to tr ug
    uk ur uz vi wae wo xh yi yo zh zh_Hans zh_Hans_CHN zh_Hans_SGP zh_Hant zh_Hant_HKG zh_Hant_MAC
    zh_Hant_TWN zu
"""
_UTF8 = {"UTF8_BINARY", "UTF8_LCASE"}
_BASES = {name.upper(): name for name in (*_UTF8, "UNICODE", *_LOCALES.split())}
_CASE = {"CI", "CS"}
_ACCENT = {"AI", "AS"}
_MODIFIERS = {*_CASE, *_ACCENT, "RTRIM"}


def canonical_collation(name: str) -> str | None:
    """The name as Spark writes it (`de_ai_ci` is `de_CI_AI`), or None if Spark has no such collation."""
    parts = name.upper().split("_")
    given: list[str] = []
    while parts and parts[-1] in _MODIFIERS and "_".join(parts) not in _BASES:
        given.append(parts.pop())
    base = _BASES.get("_".join(parts))
    chosen = set(given)
    contradictory = len(chosen) < len(given) or chosen >= _CASE or chosen >= _ACCENT
    if base is None or contradictory or (base in _UTF8 and chosen - {"RTRIM"}):
        return None
    return "_".join([base, *(suffix for suffix in ("CI", "AI", "RTRIM") if suffix in chosen)])
