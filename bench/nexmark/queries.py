"""The 23 queries of Nexmark in Spark's SQL, over the streams `person`, `auction` and `bid`.

Wherever the public texts leave open which of several equal rows comes first, more columns in ORDER BY decide it, so
that every query is a function of its input. What those texts call the current time is `_received_at` of the log.
"""

from __future__ import annotations

BIDS_OF_OPEN_AUCTIONS = "auction a JOIN bid b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires"

COUNTS = """\
  count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids"""

DISTINCT_COUNTS = ",\n".join(
    f"""\
  count(DISTINCT {column}) AS total_{column}s,
  count(DISTINCT {column}) FILTER (WHERE price < 10000) AS rank1_{column}s,
  count(DISTINCT {column}) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_{column}s,
  count(DISTINCT {column}) FILTER (WHERE price >= 1000000) AS rank3_{column}s"""
    for column in ("bidder", "auction")
)

QUERIES = {
    # Pass through: every bid as it is.
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    # Currency conversion: the price of every bid in euros.
    "q1": "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid",
    # Selection: the bids for a few auctions.
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    # Local item suggestion: who sells in one category in three states.
    "q3": """\
SELECT p.name, p.city, p.state, a.id
FROM auction a JOIN person p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    # Average price for a category: of the highest bid that came while the auction was open.
    "q4": f"""\
SELECT category, avg(final) AS average
FROM (SELECT a.id, a.category, max(b.price) AS final FROM {BIDS_OF_OPEN_AUCTIONS} GROUP BY a.id, a.category)
GROUP BY category""",
    # Hot items: the auctions with the most bids of every 10 seconds, looked at every 2 seconds.
    "q5": """\
WITH counted AS (
  SELECT auction, count(*) AS bids, window.start AS starts, window.end AS ends
  FROM bid GROUP BY auction, window(date_time, '10 seconds', '2 seconds')
), most AS (
  SELECT starts, max(bids) AS bids FROM counted GROUP BY starts
)
SELECT c.auction, c.bids, c.starts, c.ends FROM counted c JOIN most m ON c.starts = m.starts AND c.bids = m.bids""",
    # Average selling price by seller: over the last 10 auctions up to each, in the order in which they close.
    "q6": f"""\
WITH sold AS (
  SELECT a.seller, a.id, a.expires, max(b.price) AS final
  FROM {BIDS_OF_OPEN_AUCTIONS} GROUP BY a.seller, a.id, a.expires
)
SELECT seller, id AS auction,
  avg(final) OVER (PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS average
FROM sold""",
    # Highest bid: the bids with the highest price of every 10 seconds.
    "q7": """\
WITH highest AS (
  SELECT max(price) AS price, window.start AS starts, window.end AS ends
  FROM bid GROUP BY window(date_time, '10 seconds')
)
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
FROM bid b JOIN highest h ON b.price = h.price AND b.date_time >= h.starts AND b.date_time < h.ends""",
    # Monitor new users: people who opened an auction in the 10 seconds in which they came.
    "q8": """\
WITH came AS (
  SELECT id, name, window.start AS starts FROM person GROUP BY id, name, window(date_time, '10 seconds')
), sold AS (
  SELECT seller, window.start AS starts FROM auction GROUP BY seller, window(date_time, '10 seconds')
)
SELECT c.id, c.name, c.starts FROM came c JOIN sold s ON c.id = s.seller AND c.starts = s.starts""",
    # Winning bids: of every auction, the highest bid while it was open, and of equals the first.
    "q9": f"""\
SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
  auction, bidder, price, bid_date_time, bid_extra
FROM (
  SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_date_time, b.extra AS bid_extra,
    row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.bidder, b.extra) AS place
  FROM {BIDS_OF_OPEN_AUCTIONS}
)
WHERE place = 1""",
    # Log to file system: every bid with the day and the minute that would be its folder.
    "q10": """\
SELECT auction, bidder, price, date_time, extra,
  date_format(date_time, 'yyyy-MM-dd') AS day, date_format(date_time, 'HH:mm') AS minute
FROM bid""",
    # User sessions: how many bids a user made without a pause of 10 seconds.
    "q11": """\
SELECT bidder, count(*) AS bids, session_window.start AS starts, session_window.end AS ends
FROM bid GROUP BY bidder, session_window(date_time, '10 seconds')""",
    # Processing time windows: how many bids of a user arrived within the same 10 seconds.
    "q12": """\
SELECT bidder, count(*) AS bids, window.start AS starts, window.end AS ends
FROM bid__log GROUP BY bidder, window(_received_at, '10 seconds')""",
    # Bounded side input join: every bid with what a small table says about its auction.
    "q13": """\
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid b JOIN side_input s ON b.auction % 10000 = s.key""",
    # Calculation: bids of some prices, with the time of day and how often their filler has a certain letter.
    "q14": """\
SELECT auction, bidder, 0.908 * price AS price,
  CASE
    WHEN hour(date_time) BETWEEN 8 AND 18 THEN 'day'
    WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'night'
    ELSE 'other'
  END AS time_of_day,
  date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_count
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    # Bidding statistics: bids, bidders and auctions of every day at three levels of price.
    "q15": f"""\
SELECT date_format(date_time, 'yyyy-MM-dd') AS day,
{COUNTS},
{DISTINCT_COUNTS}
FROM bid GROUP BY date_format(date_time, 'yyyy-MM-dd')""",
    # Channel statistics: the same for every channel, with the last minute of the day that had a bid.
    "q16": f"""\
SELECT channel, date_format(date_time, 'yyyy-MM-dd') AS day, max(date_format(date_time, 'HH:mm')) AS minute,
{COUNTS},
{DISTINCT_COUNTS}
FROM bid GROUP BY channel, date_format(date_time, 'yyyy-MM-dd')""",
    # Auction statistics: bids of every auction and day, and their prices.
    "q17": f"""\
SELECT auction, date_format(date_time, 'yyyy-MM-dd') AS day,
{COUNTS},
  min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
FROM bid GROUP BY auction, date_format(date_time, 'yyyy-MM-dd')""",
    # Last bid: the newest of every bidder for every auction.
    "q18": """\
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY bidder, auction ORDER BY date_time DESC, price DESC, channel, url, extra
  ) AS place
  FROM bid
)
WHERE place = 1""",
    # Auction top ten: the ten highest bids of every auction, with their places.
    "q19": """\
SELECT auction, bidder, price, channel, url, date_time, extra, place
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY auction ORDER BY price DESC, date_time, bidder, channel, url, extra
  ) AS place
  FROM bid
)
WHERE place <= 10""",
    # Expand bid: bids in one category with everything about their auction.
    "q20": """\
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time AS bid_date_time, b.extra AS bid_extra,
  a.item_name, a.description, a.initial_bid, a.reserve, a.date_time AS auction_date_time, a.expires, a.seller,
  a.category, a.extra AS auction_extra
FROM bid b JOIN auction a ON b.auction = a.id
WHERE a.category = 10""",
    # Add channel id: a number for the big channels, for the others what their URL says; bids without are left out.
    "q21": """\
SELECT auction, bidder, price, channel,
  CASE lower(channel)
    WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
    ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)
  END AS channel_id
FROM bid
WHERE lower(channel) IN ('apple', 'google', 'facebook', 'baidu') OR url RLIKE '(&|^)channel_id='""",
    # URL directories: the first three folders of every URL.
    "q22": """\
SELECT auction, bidder, price, channel,
  get(split(url, '/'), 3) AS dir1, get(split(url, '/'), 4) AS dir2, get(split(url, '/'), 5) AS dir3
FROM bid""",
}
