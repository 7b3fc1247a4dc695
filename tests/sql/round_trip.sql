-- One query on each line, over the tables of test_round_trip.py.
select * from t order by a
select * exclude (l, st) from t order by a
select * replace (a+1 as a) from t order by a
select columns('a|b') from t order by a
select t.* from t order by t.a
select a, count(*) filter (where b=1), sum(distinct c), avg(d) from t group by all order by all
select b, c, sum(a), grouping(b), grouping_id(b,c) from t group by rollup (b,c) order by 1,2
select b, c, sum(a) from t group by cube (b,c) order by 1,2
select b, c, sum(a) from t group by grouping sets ((b),(c),()) order by 1,2
select distinct on (b) b, a from t order by b, a desc
select b, string_agg(s, ',' order by a desc), list(a order by a), array_agg(a order by a desc) from t group by b order by b
select first(a order by a), last(a order by a), any_value(a order by a), arg_max(s, a), arg_min(s, a), arg_max(a, a, 2), max(a, 3), min_by(s, a) from t
select quantile_cont(d, 0.5), median(a), mode(b), percentile_cont(0.25) within group (order by d), percentile_disc(0.5) within group (order by a), approx_count_distinct(a) > 0, stddev(d), var_pop(d), histogram(b), entropy(b), kurtosis(d), bool_and(a>=0), bit_xor(a), product(b+1), quantile(a, [0.1,0.9]), sum_no_overflow(b), fsum(d), count_if(a>5), corr(a,d), regr_slope(a,d), covar_pop(a,d), mad(a), skewness(a), favg(d), geomean(a+1) from t
select a, row_number() over w, sum(a) over (partition by b order by a rows between 1 preceding and 1 following exclude current row), lag(a, 2, -1) over w, first_value(n ignore nulls) over w, nth_value(a, 2) over w, ntile(3) over w, cume_dist() over w from t window w as (partition by b order by a) order by a
select a, sum(a) over (order by ts range between interval 2 hours preceding and current row), dense_rank() over (order by b desc), sum(a) over (order by b groups between 1 preceding and current row) from t order by a
select a from t qualify row_number() over (partition by b order by a desc) <= 2 order by a
select a from t order by b desc, a limit 5 offset 2
select a from t order by n desc nulls last, a limit 5
select a from t order by n limit 10%
select * from t semi join u using (a) order by a
select t.a from t anti join u on t.a=u.a order by 1
select t.a, v from t left join u using (a) order by 1
select a, v from t natural join u order by 1
select t.a, u.a from t full join u on t.a = u.v order by all
select t.a, u.v from t asof join u on t.a >= u.a order by 1
select t.a, u.v from t asof left join u on t.b = u.a and t.a >= u.v order by 1
select t.a, u.a from t right outer join u on t.a=u.a and t.b>1 order by 2
select t.a, u.a from t cross join (select max(a) as a from u) u order by 1
select t.a, x from t, lateral (select t.a+1 as x) order by 1
select t.a, x from t, unnest(t.l) as q(x) order by 1,2
select a, unnest(l) from t order by 1,2
select unnest(st) from t order by 1
select t.a from t positional join u order by 1
select a from t where a in (select a from u) order by a
select a from t where a not in (select v from u where v is not null) order by a
select a from t where exists (select 1 from u where u.a=t.a and u.v>t.b) order by a
select a, (select max(v) from u where u.a<t.a) from t order by a
select a from t where a > any (select a from u) and b <> all (select 5) order by a
select a from t where (a,b) in (select a, 0 from u) order by a
select a from t where a is not distinct from n order by a
select a from t where a is distinct from n order by a
select a from t union select v from u order by 1
select a from t intersect all select v from u order by 1
select a from t except all select v from u order by 1
select a from t union by name select a, v from u order by all
with recursive r(n) as (select 1 union all select n+1 from r where n<5) select * from r order by 1
with x as materialized (select a from t), y as not materialized (select a from x) select * from y order by 1
with recursive r(n, m) using key (n) as (select 1, 1 union select n, m+1 from r where m<5) select * from r order by 1
select try_cast(s as integer), cast(a as varchar), a::double, s::varchar(3) from t order by a
select a//2, a/2, a%2, a**2, a^2, -a, +a, @(-a), ~a, a&1, a|1, a<<1, a>>1, xor(a,1) from t order by a
select d/0, a/0, try(a%0), try(a//0), a::double%0 from t order by a
select s like 'x1%', s ilike 'X1%', s not like '%1', s similar to 'x.*', s ~ 'x1', s !~ 'x1', s glob 'x*', s ^@ 'x', s like 'x!%' escape '!' from t order by a
select l[1], l[-1], l[1:1], l[:1], st.p, st['p'], (st).q, struct_extract(st,'p'), l || [9], list_contains(l, 3), len(l) from t order by a
select [x+1 for x in l if x>2], list_transform(l, lambda x: x*2), list_filter(l, lambda x: x>3), list_reduce(l, lambda x, y: x+y), list_sort(l, 'desc'), list_reverse_sort(l), list_aggregate(l,'sum'), list_zip(l,l) from t order by a
select map {'a': a, 'b': b}['a'], map([1],[a]), {'x': a, 'y': [b]}, row(a,b), (a,b), struct_pack(z := a), map_keys(map {'k': 1}) from t order by a
select extract(year from ts), date_part('hour', ts), date_trunc('day', ts), ts + interval 1 day, ts - interval '1 month', interval (a) hours, ts::date, date_diff('hour', timestamp '2024-01-01', ts), strftime(ts, '%Y-%m'), time_bucket(interval '3 hours', ts), epoch(ts), epoch_ms(ts), ts at time zone 'UTC', age(ts, timestamp '2020-01-01'), dayofweek(ts), last_day(ts), make_date(2020,1,1), date_sub('day', date '2020-01-01', date '2020-02-01'), to_timestamp(a), isodow(ts), monthname(ts), extract(epoch from ts), date_add(ts, interval 1 day) from t order by a
select date '2024-01-01' - 1, date '2024-01-31' + interval 1 month, timestamp '2024-01-01 10:00' - timestamp '2024-01-01', timestamptz '2024-01-01 00:00:00+02', time '10:00'
select substring(s from 2 for 1), substring(s, 2), trim(both 'x' from s), trim(s), ltrim(s,'x'), position('1' in s), overlay(s placing 'zz' from 1 for 1), upper(s), s || a, concat(s,a,null), concat_ws('-', s, a, null), replace(s,'x','y'), split_part(s,'1',1), string_split(s,'1'), regexp_replace(s,'[0-9]','#','g'), regexp_extract(s,'x(\d+)',1), regexp_matches(s,'1'), lpad(s,5,'*'), reverse(s), left(s,2), right(s,1), repeat(s,2), format('{}-{}',s,a), printf('%d',a), length(s), strlen(s), ascii(s), chr(65), md5(s), sha256(s), hash(s) > 0, starts_with(s,'x'), contains(s,'1'), instr(s,'1'), levenshtein(s,'x'), regexp_split_to_array(s,'x'), translate(s,'x','y'), unicode(s), bar(a,0,20), to_base64(s::blob), hex(a), bin(a) from t order by a
select coalesce(n,0), nullif(a,1), ifnull(n,-1), greatest(a,b), least(a,b), case when a>5 then 1 else 0 end, case b when 1 then 'x' end, if(a>5,1,2), a between 1 and 5, a not between 1 and 2, n is null, n notnull, not (a>1), a>1 is true, coalesce(null,null,a) from t order by a
select round(d,1), floor(d), ceil(d), abs(-a), sqrt(a), power(a,2), ln(a+1), log(a+1), log10(a+1), log2(a+1), exp(b), sign(a-5), mod(a,3), gcd(a,4), pi(), sin(a), atan2(a,b+1), degrees(a), trunc(d), even(d), factorial(b::int), isnan(d), cbrt(a), random() >= 0, log(2, a+1) from t order by a
select json_extract('{"a": [1,2]}', '$.a[0]'), '{"a": {"b": 5}}'::json -> 'a' ->> 'b', '{"a":1}'::json->>'$.a', json_object('a', a), to_json(st), json_array_length('[1,2]'), json_keys('{"a":1}'), from_json('{"a":1}', '{"a":"INTEGER"}') from t order by a
select * from generate_series(1,5) order by 1
select * from range(0,10,3) r(x) order by 1
select generate_series(1, a) from t where a < 4 order by 1
select * from (values (1,'a'),(2,'b')) v(x,y) order by 1
from t select a where a>3 order by a
from t
select a as x, x+1 as y from t where y > 3 order by y
select b, sum(a) as total from t group by b having total > 50 order by 1
select b+1 as k, count(*) from t group by k order by k
select b, count(*) from t group by 1 order by 2 desc, 1
select t.b, count(*) c from t group by t.b having count(*) > 1 order by c, b
select a: 5, b: 6
select * from t pivot (sum(a) for b in (0,1,2)) order by all
select * from (select a, b, c from t) unpivot (val for name in (b, c)) order by all
select a from t tablesample 100% order by 1
select a from t order by a fetch first 3 rows only
select s collate nocase from t order by s collate nocase, a
select #1 from t order by 1
select rowid from t order by 1
select count(*), count(), count(n), sum(a) from t
select bool_or(a > 3) from t where a < 0
select a from t limit all
select a from t where a = (select min(a) from t) or a = 3 and not b = 2 order by 1
select approx_quantile(a, 0.5) > 0, reservoir_quantile(a, 0.5) > -1 from t
select 1e3, 1.50, 5., 100_000, 'it''s', e'a\tb', $$dollar$$, x'0aff', true, null, interval '1' day, interval 1 day, interval '1 day 2 hours', date '2020-01-01', 12345678901234567890123, -5
select typeof(1.50), typeof(1e3), typeof(12345678901), typeof(date '2020-01-01' + interval 1 day), typeof([]), typeof(1/2), typeof('x'), typeof(5::utinyint), typeof(cast(5 as decimal(10,2))), typeof(cast(5 as decimal)), typeof(cast(1 as numeric(5))), typeof('a'::text), typeof(1::float), typeof(1::real), typeof(1::hugeint), typeof(now()::timestamp_s), typeof(current_date), typeof(1::int8), typeof(1::int4), typeof(null::struct(a int)), typeof(null::map(int, text)), typeof(null::int[3]), typeof(null::bit), typeof(null::timestamp_ns), typeof(null::timetz), typeof(null::enum('a','b')), typeof(null::union(a int, b text)), typeof(null::varint), typeof(null::bignum)
select list_value(1,2), array_value(1,2), [1,2]::int[2], array_length([1,2]), list_slice([1,2,3],1,2), array_slice([1,2,3],1,2), flatten([[1],[2]]), list_concat([1],[2]), list_distinct([1,1]), list_unique([1,1]), list_position([1,2],2), array_to_string([1,2],','), list_extract([1,2],1), range(3), generate_series(3), list_append([1],2), list_prepend(0,[1]), array_append([1],2), list_resize([1],2,0), list_any_value([null,1]), list_min([1,2]), list_max([1,2]), list_sum([1,2]), list_has_all([1,2],[1]), list_intersect([1,2],[2]), [1,2] && [2], [1,2] @> [1], [1] <@ [1,2], unnest([1,2])
select a, lead(a) over (order by a desc nulls last), sum(n) over (order by n desc nulls last, a) from t order by a
select list(n order by n desc nulls last, a), list(n order by n desc, a), list(n order by n nulls first, a) from t
select a in (1,2,3), a not in (1,2), a in [1,2], a = any([1,2]), 3 = any(l) from t order by a
select * from t join u on t.a = u.a and t.b < u.v where t.c > 1 order by t.a
select x.a from (t join u using (a)) x order by 1
select * from t t1 join t t2 on t1.a = t2.b join u on u.a = t2.a order by all
select exists(select 1 from t where a > 100), (select count(*) from t), array(select a from u order by a)
select struct_insert(st, r := 1), st.* from t order by a
select a, b from t where b = 1 union all (select a, v from u where a > 4 order by a limit 2) order by 1,2
select count(distinct (a,b)), count(distinct b) from t
select sum(a) filter (b = 1) from t
select max(a) over () - a from t order by a
select cast('2024-01-01' as timestamp), timestamp '2024-01-01 00:00:00.123456', strptime('2024', '%Y'), try_strptime('x','%Y')
select a from t where s in ('x1', 'x2') order by a desc
select ifnull(n, 5) + coalesce(n, 1) from t order by a
select b, arg_max(s, a order by a) from t group by b order by b
select trunc(d), a % 3 = 1, not a % 3 = 1, a + b * c - (a - b) - c, (a + b) * c, a - (b - c), -(-a), a - -b, 2 ** 3 ** 2, -2 ** 2, (-2) ** 2, 7 // 2 * 2, 7 / (2 * 2), a || b || c from t order by a
select 1 from t having count(*) > 3
select all a from t order by 1
select a from t where true order by case when a > 5 then 0 else 1 end, a
select coalesce((select v from u where u.a = t.a), -1) from t order by a
select year(ts), month(ts), day(ts), hour(ts), week(ts), quarter(ts), weekday(ts), dayname(ts), epoch_us(ts), century(ts), datepart('year', ts), date_part(['year','month'], ts), datesub('hour', ts, ts), datetrunc('month', ts), to_days(1), to_hours(2), to_seconds(1.5), make_timestamp(2020,1,1,1,1,1.5) from t order by a
select any_value(n), first(n), last(n), first(a), count(*) from (select * from t order by a)
select list_filter([1,2,3], lambda x, i: i > 1)
select a from t order by (select 1), a
select b, max(a), min(a), max(s), min(s), max(st), sum(d), avg(a) from t group by b order by b
select max_by(a, d), min_by(a, d), arg_max_null(a, d), bitstring_agg(b) from t
select a is null or b is not null and c isnull from t order by a
select sum(case when b = 1 then a end) / count(*), 100.0 * sum(a) / sum(b) from t
select t.a from t join u on t.a = u.a or t.b = u.v order by all
select * from t where ts >= timestamp '2024-01-01 05:00:00' and ts < '2024-01-01 08:00:00'::timestamp order by a
select greatest(a, null, b), least(null, a), concat('a', null), 'a' || null, length(null) from t order by a
select group_concat(s, '|' order by a), listagg(s, ',' order by a), string_agg(s order by a) from t
select median(distinct b), mode(b order by b), sum(distinct b) filter (where a > 3) from t
select date_trunc(unit, ts), date_diff(unit, ts, timestamp '2025-01-01'), date_add(ts, interval (a) day), datetrunc('month', ts) from t order by a
select log2(a + 1), log10(a + 1), log(a + 1), log(3, a + 1), reduce(l, lambda x, y: x * 10 + y, 7), apply(l, lambda x: x + 1), jaro_winkler_similarity(s, 'x1', 0.9) from t order by a
select regexp_replace(s, 'X', 'y', 'gi'), regexp_extract(s, 'X(.)', 1, 'i') from t order by a
select json_extract(to_json(st), 'q') = '"z"', (to_json(st) -> 'p') = to_json(a), (to_json(st) ->> 'p')::int + 1 from t order by a
select mod(a + 1, b + 2) * 2, -mod(a, 2), if(a > 3, 1, 2) + 1, (l && [3]) = true, not l @> [3] from t order by a
select '{"a.b": 1, "a": {"b": 2}}'::json -> 'a.b', '{"a.b": 1, "a": {"b": 2}}'::json -> '$.a.b'
select time_bucket(interval 3 hours, ts, timestamp '2024-01-01 01:00:00'), time_bucket(interval 3 hours, ts, ts) from t order by a
