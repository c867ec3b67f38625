"""What the grammar must come up with, as patterns of its SQL."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

FEATURES = {
    "WHERE": r" WHERE ",
    "HAVING": r" HAVING ",
    "inner join": r"\w (INNER )?JOIN ",
    "left join": r" LEFT (OUTER )?JOIN ",
    "right join": r" RIGHT JOIN ",
    "full join": r" FULL (OUTER )?JOIN ",
    "semi join": r" SEMI JOIN ",
    "anti join": r" ANTI JOIN ",
    "cross join": r" CROSS JOIN ",
    "USING": r" USING \(",
    "NATURAL": r" NATURAL ",
    "null-safe join": r" ON [^A-Z]*<=>",
    "join without equality": r" JOIN \S+ \S+ ON \(\S+ (<|>|>=|<>) \S+\)(?! AND)",
    "join with a residual": r" ON \([^()]* (=|<=>) [^()]*\) AND ",
    "self-join": r"\b(items|parts|loose|events) t\d+ [A-Z ]*JOIN \1 t",
    "three inputs": r" JOIN .* JOIN ",
    "count": r"\bcount\((\*|\w)",
    "sum": r"\bsum\(",
    "avg": r"\bavg\(",
    "min or max": r"\b(min|max)\(",
    "count distinct": r"count\(DISTINCT",
    "FILTER": r" FILTER \(WHERE",
    "stddev or variance": r"\b(stddev|var)\w*\(",
    "bool_and or bool_or": r"\bbool_(and|or)\(",
    "max_by or min_by": r"\b(max|min)_by\(",
    "collect_set": r"collect_set\(",
    "percentile": r"\bpercentile\w*\(",
    "median": r"\bmedian\(",
    "mode": r"\bmode\(",
    "approx_count_distinct": r"approx_count_distinct\(",
    "listagg": r"\blistagg\(",
    "GROUP BY": r" GROUP BY ",
    "GROUPING SETS": r" GROUPING SETS ",
    "ROLLUP": r" ROLLUP ",
    "CUBE": r" CUBE ",
    "grouping_id": r"grouping(_id)?\(",
    "global aggregate": r"^SELECT (count|sum|avg|min|max|bool_\w+)\((?!.* (GROUP BY|OVER) )",
    "DISTINCT": r"SELECT DISTINCT ",
    "scalar subquery": r"(<|>|=|,|SELECT) \(SELECT ",
    "IN subquery": r"(?<!NOT) IN \(SELECT ",
    "NOT IN subquery": r" NOT IN \(SELECT ",
    "IN of two columns": r"\(\([^()]*, [^()]*\) (NOT )?IN \(SELECT",
    "EXISTS": r"(?<!NOT )EXISTS \(SELECT",
    "NOT EXISTS": r"NOT EXISTS \(SELECT",
    "subquery in SELECT": r"^SELECT [^F]*\(SELECT [^F]* FROM .* FROM ",
    "subquery in HAVING": r" HAVING (?!.* WHERE ).*\(SELECT ",
    "subquery in a subquery": r"(IN|EXISTS|<|>|=) \(SELECT [^()]* WHERE .*(IN|EXISTS|<|>|=) \(SELECT ",
    "UNION": r"\) UNION \(",
    "UNION ALL": r"\) UNION ALL \(",
    "INTERSECT": r"\) INTERSECT \(",
    "INTERSECT ALL": r"\) INTERSECT ALL \(",
    "EXCEPT": r"\) (EXCEPT|MINUS) \(",
    "EXCEPT ALL": r"\) EXCEPT ALL \(",
    "rank": r"\brank\(\) OVER",
    "dense_rank": r"dense_rank\(\) OVER",
    "row_number": r"row_number\(\) OVER",
    "lag or lead": r"\b(lag|lead)\(",
    "ntile": r"\bntile\(",
    "percent_rank": r"percent_rank\(",
    "ROWS frame": r" ROWS (BETWEEN|UNBOUNDED)",
    "RANGE frame": r" RANGE BETWEEN",
    "window over groups": r"OVER \(ORDER BY count|count\(\*\)\) OVER",
    "QUALIFY": r" QUALIFY ",
    "top-k per group": r"_?(rank|number)\(\) OVER .* q\d+ WHERE \(q\d+\.c\d+ <= ",
    "ORDER BY … LIMIT": r" ORDER BY [^()]* LIMIT ",
    "OFFSET": r" OFFSET ",
    "CTE": r"\bWITH w\d+ AS",
    "shared CTE": r"\b(w\d+) t\d+.*\b\1 t\d+",
    "nested CTE": r"\(WITH w\d+ AS",
    "PIVOT": r"\) PIVOT \(",
    "UNPIVOT": r"\) UNPIVOT",
    "LATERAL VIEW": r" LATERAL VIEW ",
    "lateral subquery": r" LATERAL \(SELECT",
    "lateral call": r" LATERAL explode",
    "higher-order function": r" -> ",
    "CASE": r"\bCASE ",
    "coalesce": r"\b(coalesce|nvl|if|nullif)\(",
    "window()": r"\bwindow\(",
    "session_window()": r"\bsession_window\(",
    "VALUES": r"\(VALUES ",
}
_PATTERNS = {name: re.compile(pattern) for name, pattern in FEATURES.items()}


def counted(texts: Iterable[str]) -> Counter[str]:
    """In how many of the queries each is found."""
    found = Counter(dict.fromkeys(FEATURES, 0))
    for sql in texts:
        found.update(name for name, pattern in _PATTERNS.items() if pattern.search(sql))
    return found
