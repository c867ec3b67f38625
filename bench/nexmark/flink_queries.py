"""The queries of Nexmark in Flink's SQL, over the same streams: what the Spark texts ask, as Flink's users would.

Windows are Flink's window functions over event time, which give a window's rows once, when the watermark has passed
it, and forget them: less than ours do, which keep every answer up to date.
"""

from __future__ import annotations

from bench.nexmark.queries import BIDS_OF_OPEN_AUCTIONS, COUNTS, DISTINCT_COUNTS

QUERIES = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": """SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q4": f"""SELECT category, avg(final) AS average FROM
(SELECT a.id, a.category, max(b.price) AS final FROM {BIDS_OF_OPEN_AUCTIONS} GROUP BY a.id, a.category)
GROUP BY category""",
    "q5": """SELECT c.auction, c.bids, c.window_start, c.window_end FROM
(SELECT auction, count(*) AS bids, window_start, window_end
 FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
 GROUP BY auction, window_start, window_end) c
JOIN (SELECT max(bids) AS bids, window_start, window_end FROM
 (SELECT auction, count(*) AS bids, window_start, window_end
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
  GROUP BY auction, window_start, window_end)
 GROUP BY window_start, window_end) m
ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.bids >= m.bids""",
    "q7": """SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b
JOIN (SELECT max(price) AS price, window_end AS ends
 FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND)) GROUP BY window_start, window_end) h
ON b.price = h.price AND b.date_time BETWEEN h.ends - INTERVAL '10' SECOND AND h.ends""",
    "q8": """SELECT c.id, c.name, c.window_start FROM
(SELECT id, name, window_start, window_end
 FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
 GROUP BY id, name, window_start, window_end) c
JOIN (SELECT seller, window_start, window_end
 FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
 GROUP BY seller, window_start, window_end) s
ON c.id = s.seller AND c.window_start = s.window_start AND c.window_end = s.window_end""",
    "q9": f"""SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
 auction, bidder, price, bid_date_time, bid_extra FROM
(SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_date_time, b.extra AS bid_extra,
 ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS place FROM {BIDS_OF_OPEN_AUCTIONS})
WHERE place <= 1""",
    "q10": """SELECT auction, bidder, price, date_time, extra,
 DATE_FORMAT(date_time, 'yyyy-MM-dd') AS dt, DATE_FORMAT(date_time, 'HH:mm') AS hm FROM bid""",
    "q11": """SELECT bidder, count(*) AS bids, window_start, window_end
FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end""",
    "q12": """SELECT bidder, count(*) AS bids, window_start, window_end
FROM TABLE(TUMBLE(TABLE bid_now, DESCRIPTOR(p_time), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end""",
    "q13": """SELECT b.auction, b.bidder, b.price, b.date_time, s.`value`
FROM bid b JOIN side_input s ON MOD(b.auction, 10000) = s.key""",
    "q14": """SELECT auction, bidder, 0.908 * price AS price,
 CASE WHEN HOUR(date_time) BETWEEN 8 AND 18 THEN 'day'
  WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20 THEN 'night' ELSE 'other' END AS time_of_day,
 date_time, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS c_count
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"""SELECT DATE_FORMAT(date_time, 'yyyy-MM-dd') AS dt,
{COUNTS},
{DISTINCT_COUNTS}
FROM bid GROUP BY DATE_FORMAT(date_time, 'yyyy-MM-dd')""",
    "q16": f"""SELECT channel, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS dt,
 max(DATE_FORMAT(date_time, 'HH:mm')) AS hm,
{COUNTS},
{DISTINCT_COUNTS}
FROM bid GROUP BY channel, DATE_FORMAT(date_time, 'yyyy-MM-dd')""",
    "q17": f"""SELECT auction, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS dt,
{COUNTS},
 min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
FROM bid GROUP BY auction, DATE_FORMAT(date_time, 'yyyy-MM-dd')""",
    "q18": """SELECT auction, bidder, price, channel, url, date_time, extra FROM
(SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place FROM bid)
WHERE place <= 1""",
    "q19": """SELECT auction, bidder, price, channel, url, date_time, extra, place FROM
(SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid) WHERE place <= 10""",
    "q20": """SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time AS bid_date_time,
 b.extra AS bid_extra, a.item_name, a.description, a.initial_bid, a.reserve, a.date_time AS auction_date_time,
 a.expires, a.seller, a.category, a.extra AS auction_extra
FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
    "q21": """SELECT auction, bidder, price, channel,
 CASE LOWER(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
  ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
FROM bid WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
 OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """SELECT auction, bidder, price, channel,
 SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2, SPLIT_INDEX(url, '/', 5) AS dir3 FROM bid""",
}
"""All but q6, whose window of rows over a maximum that changes Flink cannot run."""
