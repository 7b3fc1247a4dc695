"""Queries over the shop, by construct: what becomes operators, and what is re-evaluated."""

from __future__ import annotations

OPERATORS = (
    "select o.id, t.tag from orders o left join lateral unnest(o.tags) as t(tag) on true",
    "select id, n from orders, lateral generate_series(1, amount) as t(n)",
    "select o.id, c.id as cid from orders o join customers c on upper(c.name) collate nocase = substr(o.tags[1], 1)",
    "select id from customers order by upper(name) collate nocase desc, id limit 2",
    "select id, amount * 2 as a from orders where amount > 1 and price is not null",
    "select amount from orders",
    "select o.id, c.name from orders o join customers c on o.customer = c.id",
    "select o.id, c.name from orders o, customers c where o.customer = c.id and c.city = 'rome'",
    "select o.id, c.name, i.line from orders o, customers c, items i where i.order_id = o.id and o.customer = c.id",
    "select o.id, c.name from orders o left join customers c on o.customer = c.id and c.city = 'rome'",
    "select o.id, c.name from orders o right join customers c on o.customer = c.id",
    "select o.id, c.name from orders o full join customers c on o.customer = c.id and o.amount > 1",
    "select a.id, b.id as bid from orders a join orders b on a.customer = b.customer and a.id < b.id",
    "select o.id, c.name from orders o join customers c on o.customer is not distinct from c.since",
    "select o.id from orders o semi join customers c on o.customer = c.id",
    "select o.id from orders o anti join customers c on o.customer = c.id",
    "select o.id, t.n from orders o cross join (select count(*) as n from items) t",
    "select customer, count(*) as n, sum(amount) as s, avg(price) as p, min(amount), max(amount) from "
    "orders group by customer",
    "select count(*), sum(amount) from orders",
    "select customer, count(distinct amount) as n, sum(amount) filter (where amount > 1) as s from orders"
    " group by 1 having count(*) > 1",
    "select amount + 1 as a, customer, count(*) from orders group by amount + 1, customer",
    "select amount % 2 + 1 as a, count(*) + 1 as n from orders group by amount % 2",
    "select s.c, s.n from (select customer as c, count(*) as n from orders group by customer) s where s.n > 1",
    "select customer from orders union select id from customers",
    "select customer from orders union all select since from customers",
    "select customer from orders intersect select id from customers",
    "select customer from orders except select id from customers",
    "select customer from orders except all select id from customers",
    "select customer from orders intersect all select customer from visits",
    "select distinct customer, amount from orders",
    "with t as (select customer, sum(amount) as s from orders group by customer) select a.customer, b.s "
    "from t a join t b on a.s = b.s",
    "select 1 as a, 'x' as b",
    "select * from (values (1, 'a'), (2, 'b')) v(a, b)",
    "select v.a, o.id from (values (1, 'a'), (2, 'b')) v(a, b) join orders o on o.customer = v.a",
    "select i as x from range(5) t(i)",
    "select customer, amount, count(*) from orders group by rollup(customer, amount)",
    "select customer, grouping(customer) as g, grouping(customer, amount) as h, count(*) from orders "
    "group by grouping sets ((customer), (amount, customer), (), ())",
    "select customer, amount, sum(price) from orders group by cube(customer, amount)",
    "select id from orders where customer in (select id from customers where city = 'rome')",
    "select id from orders where customer not in (select id from customers where city = 'rome')",
    "select id from orders where customer not in (select customer from visits where page = 'a')",
    "select id from orders where exists (select * from customers c where c.id = orders.customer)",
    "select id from orders o where not exists (select 1 from items i where i.order_id = o.id and "
    "i.quantity > o.amount)",
    "select id from orders where exists (select 1 from customers where city = 'rome')",
    "select id from orders where amount > (select avg(amount) from orders)",
    "select id, (select count(*) from items i where i.order_id = o.id) as n from orders o",
    "select id, (select sum(quantity) + 1 from items i where i.order_id = o.id) as n from orders o",
    "select id, (select max(since) from customers) as n from orders o",
    "select id from orders o where amount = (select max(amount) from orders p where p.customer = o.customer)",
    "select id from orders o where amount < (select 2 * count(*) from items i where i.order_id = o.id and"
    " i.quantity > 1)",
    "select id from orders o where customer in (select id from customers) or amount > 2",
    "select id, customer in (select customer from visits) as m, exists (select 1 from items i where "
    "i.order_id = o.id) as e from orders o",
    "select id from orders o where customer not in (select since from customers) or amount is null",
    "select id from orders o where amount = any (select quantity from items i where i.order_id = o.id)",
    "select id, amount > any (select quantity from items i where i.order_id = o.id) as a, amount >= all "
    "(select quantity from items i where i.order_id = o.id) as b from orders o",
    "select id from orders o where customer not in (select v.customer from visits v where v.page = 'a' "
    "and v.customer = o.amount)",
    "select id, (select i.quantity from items i where i.order_id = o.id order by i.quantity desc, i.line "
    "limit 1) as q from orders o",
    "select id, (select name from customers c where c.id = o.customer) as n from orders o",
    "select customer, count(*) as n from orders group by customer having count(*) > (select count(*) from"
    " customers) / 3",
    "select customer, (select max(name) from customers c where c.id = customer) as nm, sum(amount) from "
    "orders group by customer",
    "select customer, sum((select count(*) from items i where i.order_id = o.id)) as s from orders o group by customer",
    "select id from orders where (customer, amount) in (select id, since from customers)",
    "select o.id, s.n from orders o, lateral (select count(*) as n, max(quantity) as q from items i where"
    " i.order_id = o.id) s",
    "select o.id, s.q from orders o left join lateral (select quantity as q from items i where i.order_id"
    " = o.id and i.line < o.amount) s on true",
    "select o.id, s.q from orders o join lateral (select quantity as q from items i where i.order_id = "
    "o.id order by quantity, line limit 1) s on true",
    "select id, row_number() over (partition by customer order by amount, id) as n from orders",
    "select id, rank() over (partition by customer order by amount) as n, dense_rank() over (order by "
    "amount) d, sum(amount) over (partition by customer order by id rows between 1 preceding and current "
    "row) as s from orders",
    "select id, lag(amount) over (order by id) as n, sum(amount) over w as s, avg(price) over (w rows "
    "between unbounded preceding and current row) from orders window w as (partition by customer order by"
    " id)",
    "select id, sum(amount) over (order by moment range between interval 2 hours preceding and current "
    "row) as s from orders",
    "select customer, sum(sum(amount)) over (order by customer) as s, rank() over (order by count(*)) as "
    "r from orders group by customer",
    "select id, amount from orders qualify row_number() over (partition by customer order by amount desc, id) <= 2",
    "select id, amount, row_number() over (partition by customer order by amount desc, id) as n from "
    "orders qualify n = 1 or amount > 3",
    "select * from (select id, amount, customer, row_number() over (partition by customer order by amount"
    " desc, id) as n from orders) s where n <= 2",
    "select s.id, s.n from (select id, rank() over (partition by customer order by amount desc) as n from"
    " orders) s where s.n <= 2 and s.id > 1",
    "select id, amount from orders order by amount desc, id limit 3",
    "select id, amount from orders order by amount desc nulls last, id limit 3 offset 2",
    "select id, amount + 1 as a from orders order by price, a, id offset 4",
    "select id from orders limit 3",
    "select distinct customer from orders order by customer limit 2",
    "select customer, count(*) as n from orders group by customer order by n desc, customer limit 2",
    "select customer, count(*) as n from orders group by customer order by count(*) desc, customer limit 2",
    "select customer, count(*) as n from orders group by customer order by 2 desc, 1",
    "select distinct on (customer) id, customer, amount from orders order by customer, amount desc, id",
    "select id from orders union all select id from customers order by id limit 4",
    "(select id from orders order by id limit 2) union all (select id from customers order by id desc limit 2)",
    "select o.id, u.t from orders o, unnest(o.tags) as u(t)",
    "select id, unnest(tags) as t from orders",
    "select o.id, u.t from orders o left join unnest(o.tags) as u(t) on true",
    "select o.id, g.n from orders o, generate_series(1, o.amount) as g(n)",
    "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select n from r",
    "select customer, list(id order by id) as l, string_agg(cast(id as varchar), ',' order by id desc) as"
    " s, median(amount) as m, arg_max(id, amount * 100 - id) as g from orders group by customer",
    "select customer, list(id) as l, string_agg(cast(id as varchar), '-') as t, first(id) as f, "
    "quantile_cont(price, 0.5) as q, mode(amount * 0) as m, count_if(amount > 1) as c from orders group "
    "by customer",
    "select customer, array_agg(distinct amount order by amount) as d, stddev(price) as s, bool_or(amount"
    " > 1) as b, approx_count_distinct(amount) as ac from orders group by customer",
    "select id, first_value(id) over (partition by customer order by amount range between unbounded "
    "preceding and current row) is not null as f, count(*) over (partition by customer order by amount "
    "groups between 1 preceding and 1 following) as c from orders",
    "select id, case when amount > (select avg(amount) from orders) then 'h' else 'l' end as x from orders",
    "select count(*) from orders o where exists (select 1 from items i where i.order_id = o.id and exists"
    " (select 1 from customers c where c.id = i.product and c.since = o.amount))",
    "select o.id, c.name from orders o join (customers c join visits v on v.customer = c.id) on o.customer = c.id",
    "select a.id, b.id as b from orders a left join orders b on a.customer = b.customer, customers c "
    "where c.id = a.customer",
    "select a.id, b.id as b, c.id as c from orders a, customers b full join visits v on v.customer = "
    "b.id, customers c where c.id = a.customer and b.since = a.amount",
    "select sum(amount) from orders having count(*) > 3",
    "select 1 as x from orders group by customer",
    "select customer from orders group by all",
    "select customer, amount, count(*) as n from orders group by all order by all",
    "select (select count(*) from orders) as a, (select max(id) from customers) as b",
    "select count(*) as n from orders o join customers c on o.customer = c.id where c.city = 'rome' and "
    "o.amount in (select quantity from items)",
    "select o.id, c.name from orders o left outer join customers c on o.customer = c.id",
    "select o.id, c.id as c from orders o, customers c where (o.customer = c.id and c.city = 'rome') or "
    "(o.customer = c.id and o.amount > 2)",
    "select o.id, c.id as c from orders o left join customers c on (o.customer = c.id and c.city = "
    "'rome') or (o.customer = c.id and o.amount > 2)",
    "select customer, sum(amount) as s from orders group by customer order by s desc nulls last, customer"
    " limit 1 offset 1",
    "select id from orders o where (select count(*) from items i where i.order_id = o.id) > 1",
    "select id from orders o where (select count_if(quantity > 2) from items i where i.order_id = o.id) is null",
    "select id from orders o where 1 < (select count(distinct i.product) + count(*) from items i where "
    "i.order_id = o.id)",
    "select id, coalesce((select sum(quantity) from items i where i.order_id = o.id), -1) as s from orders o",
    "select id, (select sum(quantity) from items i where i.order_id = o.id and i.quantity > o.amount) as "
    "s from orders o",
    "select id from orders o where exists (select product from items i where i.order_id = o.id group by "
    "product having count(*) > 1)",
    "select id from orders o where o.amount in (select count(*) from items i where i.order_id = o.id)",
    "select id from orders o where not exists (select 1 from customers c where not exists (select 1 from "
    "visits v where v.customer = c.id and v.page = 'a'))",
    "select id from orders o where customer is not distinct from (select max(customer) from visits)",
    "select id from orders o where exists (select 1 from visits v where v.customer is not distinct from "
    "o.customer and v.page = 'a')",
    "select id, (select string_agg(v.page, ',' order by v.page) from visits v where v.customer = "
    "o.customer) as p from orders o",
    "select a.id from orders a where a.amount >= all (select b.amount from orders b where b.customer = a.customer)",
    "select id from orders where amount <> all (select quantity from items)",
    "select id from orders where not amount = any (select quantity from items where quantity is not null)",
    "select customer, count(*) from orders where id in (select order_id from items) group by customer "
    "having max(amount) in (select since from customers)",
    "select o.id, x.n from orders o left join (select customer, count(*) as n from visits group by "
    "customer) x on x.customer = o.customer",
    "select t.c, count(*) as n from (select distinct customer as c, amount from orders) t group by t.c",
    "select c.name, o.id from customers c left join orders o on o.customer = c.id left join items i on "
    "i.order_id = o.id and i.quantity > 2",
    "select c.name, o.id, i.line from customers c full join orders o on o.customer = c.id full join items"
    " i on i.order_id = o.id",
    "select coalesce(o.customer, v.customer) as k, count(*) as n from orders o full join visits v on "
    "o.customer = v.customer group by 1",
    "select id, sum(amount) over () as s, count(*) over (partition by customer) as n, ntile(2) over "
    "(order by id) as t from orders",
    "select id, amount, lead(amount, 2, -1) over (partition by customer order by id desc) as l, "
    "nth_value(id, 2) over (partition by customer order by id) as v, cume_dist() over (order by amount) "
    "as cd, percent_rank() over (order by amount) as pr from orders",
    "select id, sum(amount) filter (where amount > 1) over (partition by customer order by id) as s from orders",
    "select id, sum(amount) over (order by amount groups between 1 preceding and current row exclude "
    "current row) as s from orders",
    "select id, last_value(amount ignore nulls) over (partition by customer order by id rows between "
    "unbounded preceding and 1 preceding) as l from orders",
    "select customer, rank() over (order by sum(amount) desc) as r from orders group by customer qualify r <= 2",
    "select id, customer from orders qualify count(*) over (partition by customer) > 1 and row_number() "
    "over (partition by customer order by id) = 1",
    "select id from orders qualify rank() over (partition by customer order by amount) = 1",
    "select id from orders where customer in (select customer from orders group by customer having "
    "count(*) > 1) qualify row_number() over (order by id) < 3",
    "select id, dense_rank() over (order by amount) as d from orders qualify d <= 2",
    "select x.id, x.rn from (select id, customer, row_number() over (partition by customer order by id) "
    "as rn from orders) x join customers c on c.id = x.customer where x.rn <= 1",
    "select distinct on (customer, amount % 2) id from orders order by customer, amount % 2, id desc",
    "select distinct on (customer) id, customer from orders order by customer, id limit 2",
    "select distinct amount + 1 as a from orders order by a desc limit 2",
    "select distinct customer, count(*) over (partition by customer) as n from orders",
    "select customer as k, 'o' as src from orders union select id, 'c' from customers union all select "
    "customer, 'v' from visits",
    "select k, count(*) as n from (select customer as k from orders union all select customer from visits"
    " union all select id from customers) u group by k",
    "select id from orders except select order_id from items intersect select id from customers",
    "(select id from orders union select id from customers) except all (select order_id from items)",
    "select u.k from (select customer as k from orders intersect all select customer from visits) u where u.k > 2",
    "select id, t from orders, unnest(tags) as u(t) where t = 'x'",
    "select t, count(*) as n from orders, unnest(tags) as u(t) group by t",
    "select unnest(tags) as t, count(*) as n from orders group by tags",
    "select o.id, u.t, u.ord from orders o, unnest(o.tags) with ordinality as u(t, ord)",
    "select unnest([1, 2, 3]) as n, id from customers",
    "select * from generate_series(1, 4) g(n) where n not in (select customer from visits where customer is not null)",
    "select g.n, count(o.id) as c from range(0, 5) g(n) left join orders o on o.amount = g.n group by g.n",
    "select v.page, v.customer from visits v",
    "select page, count(*) as n from visits group by page",
    "select v.page, w.page as q from visits v join visits w on v.customer = w.customer",
    "select distinct page from visits",
    "select page from visits order by page limit 4",
    "select v.customer from visits v where v.customer not in (select customer from orders where customer is not null)",
    "select customer, min(amount) filter (where price > 1) as m, max(distinct amount) as x, avg(distinct "
    "amount) as a, sum(distinct amount) as s from orders group by customer",
    "select count(*) filter (where amount > 1) as a, min(price) as b, string_agg(cast(amount as varchar),"
    " '' order by id) as c from orders",
    "select customer, first(amount order by id desc) as f, last(id order by id) as l, list(id order by "
    "amount, id) filter (where amount > 0) as li, max(id, 2) as m2, arg_min(id, id) as am from orders "
    "group by customer",
    "select customer, product(amount + 1) as p, kurtosis(amount) is null as k, histogram(amount) as h, "
    "list_sort(list(distinct amount)) as ld, corr(amount, price) is null as co from orders group by "
    "customer",
    "select customer % 2 as k, sum(amount) * 2 + count(*) as v from orders group by customer % 2 having "
    "sum(amount) > 1 or count(*) > 2",
    "select amount, customer, sum(price) as s, grouping(amount) as g from orders group by grouping sets "
    "((amount), (customer)) having count(*) > 1",
    "select customer, count(*) from orders group by rollup(customer) order by customer limit 3",
    "select amount, count(*), rank() over (partition by grouping(amount) order by count(*)) as r from "
    "orders group by cube(amount)",
    "select c.city, (select count(*) from orders o join customers d on d.id = o.customer where d.city = "
    "c.city) as n from customers c",
    "select case when exists (select 1 from items where quantity > 3) then 'y' else 'n' end as b, "
    "count(*) from orders group by 1",
    "select max((select max(quantity) from items i where i.order_id = o.id)) as m from orders o",
    "select o.id from orders o where o.amount between (select min(since) from customers) and (select "
    "max(since) from customers)",
    "select o.id from orders o join customers c on o.customer = c.id and c.since > (select avg(since) from customers)",
    "select o.id from orders o left join customers c on o.customer = c.id and c.since > (select "
    "avg(since) from customers)",
    "select id from orders o where exists (select 1 from (select customer, count(*) as n from visits "
    "group by customer) x where x.customer = o.customer and x.n > o.amount)",
    "select id from orders o where amount > (select avg(p.amount) from orders p where p.customer = "
    "o.customer group by p.customer)",
    "select id, (select count(*) from visits v join customers c on c.id = v.customer where v.customer = "
    "o.customer) as n from orders o",
    "select o.id, l.m from orders o cross join lateral (select max(i.quantity) + o.amount as m from items"
    " i where i.order_id = o.id) l",
    "select o.id, l.id as d from orders o, lateral (select p.id from orders p where p.customer = "
    "o.customer and p.id > o.id order by p.id limit 2) l",
    "select a.id from orders a, orders b, orders c where a.customer = b.customer and b.amount = c.amount "
    "and a.id < b.id and c.id <> a.id",
    "select a.id, b.id as b from orders a join customers b on a.customer + 1 = b.id * 1",
    "select a.id, b.id as b from orders a join customers b on a.customer = b.since and a.amount is not "
    "distinct from b.id",
    "select o.id, c.name from orders o join customers c on cast(o.customer as varchar) = c.name",
    "select * from (select 1 as a) x, (select count(*) as n from orders) y",
    'select id as "the id", amount as "Amount" from orders where "amount" > 1',
    "select o.ID, O.Amount from ORDERS o",
    "select {'a': id, 'b': amount} as s, [id, amount] as l, map([id], [amount]) as m from orders",
    "select s.a.x as x from (select {'x': id} as a from orders) s",
    "select id, amount::varchar as t, try_cast(price as integer) as p, extract(hour from moment) as h, "
    "moment::date as d from orders",
    "select date_trunc('hour', moment) as h, count(*) as n from orders group by all",
    "select id, 7 / 2 as i, amount / 0 as z, price / 0 as f from orders",
    "select id, (select sum(quantity) from items i where i.order_id = o.id and i.quantity > o.amount) as "
    "s from orders o",
    "select id, (select count(*) from items i where i.quantity > o.amount and i.order_id = o.id) as s from orders o",
    "select o.id, l.m from orders o cross join lateral (select max(i.quantity) + o.amount as m from items"
    " i where i.order_id = o.id) l",
    "select o.id, l.id as d from orders o, lateral (select p.id from orders p where p.customer = "
    "o.customer and p.id > o.id order by p.id limit 2) l",
    "select count(*) from orders o where exists (select 1 from items i where i.order_id = o.id and exists"
    " (select 1 from customers c where c.id = i.product and c.since = o.amount))",
    "select id from orders o where o.amount > (select avg(p.amount) from orders p where p.customer = "
    "o.customer and p.id <> o.id)",
    "select id from orders o where exists (select 1 from items i where i.order_id = o.id and i.quantity >"
    " o.amount) or o.amount is null",
    "select customer, (select count(*) from visits v where v.customer > g.customer and v.customer = "
    "g.customer + 1) as n from (select distinct customer from orders) g",
    "select id from orders o where o.amount in (select i.quantity + o.id from items i where i.order_id = o.id)",
    "select customer, page, o.id from orders o join visits using (customer)",
    "select customer, amount, rank() over (partition by grouping(customer), grouping(amount) order by "
    "sum(price), customer, amount) as r from orders group by cube (customer, amount)",
    "select customer, grouping(customer) + rank() over (partition by grouping((customer)) order by count(*)) as r, "
    "sum(count(*)) over (order by grouping(customer, amount), customer, amount) as s from orders group by "
    "rollup (customer, amount) qualify r < 5",
    "select s.id, s.n from (select id, row_number() over (partition by customer order by amount desc, id) as n "
    "from orders) s where 1 = s.n",
    "select s.id from (select id, row_number() over (partition by customer order by amount desc, id) as n "
    "from orders) s where s.n between 1 and 2 and s.id > 3",
    "select s.id, s.n from (select id, row_number() over (partition by customer order by id) as n from orders) s "
    "where 3 > s.n and s.n <> 1",
    "select s.id, s.n from (select id, rank() over (order by amount) as n from orders where price > 0) s where s.n = 3",
    "select s.id, s.n, s.d from (select id, rank() over (order by amount) as n, dense_rank() over (order by amount) "
    "as d, count(*) over () as c from orders) s where s.n <= 4 and s.d < 3 and s.c > 2",
    "select id, dense_rank() over (partition by customer order by amount) as d from orders qualify 1 = d",
    "select t.id from (select s.id, s.n as m from (select id, customer, row_number() over (partition by customer "
    "order by id) as n from orders) s join customers c on c.id = s.customer where c.city = 'rome') t where t.m <= 2",
    "select t.id, t.c from (select s.id, count(*) over () as c, s.n as m from (select id, row_number() over "
    "(partition by customer order by id) as n from orders) s) t where t.m <= 2",
    "with r as (select id, customer, row_number() over (partition by customer order by id desc) as n from orders) "
    "select r.id, q.id as q from r left join r as q on q.customer = r.customer where r.n = 1",
    "with r as (select id, customer, row_number() over (partition by customer order by id desc) as n from orders) "
    "select r.id, q.id as q from r left join r as q on q.customer = r.customer where q.n = 1",
    "select s.id, c.id as c from (select id, customer, row_number() over (order by id) as n from orders) s "
    "full join customers c on c.id = s.customer where s.n <= 3",
    "select id from orders qualify row_number() over (order by (select count(*) from customers c where c.id = "
    "customer), id) <= 3",
    "select id from orders qualify row_number() over (order by id) <= 5 and row_number() over (order by id) > 2",
    "select id, row_number() over (partition by customer order by id) between 2 and 3 as b from orders",
    "select id from orders o where exists (select count(*) from items i where i.order_id = o.id)",
    "select id, customer in (select since from customers) as m, customer * 1.5 not in (select i.quantity from items i "
    "where i.order_id = o.id) as n from orders o",
    "select customer, count(*) as n, count(*) over () as m, 1 - count(*) over (order by customer) as k, sum(amount) "
    "as s, sum(sum(amount)) filter (where count(*) > 1) over () as t from orders group by customer",
    "select id, (select distinct sum(quantity) / 2 from items i where i.order_id = o.id) as s from orders o where "
    "amount not in (select distinct max(line) from items i where i.order_id = o.id and i.quantity >= o.amount)",
    "select id, exists (select max(line) from items i where i.order_id = o.id) as e from orders o",
    "select id, amount = all (select quantity from items i where i.order_id = o.id) as a, amount <> any (select "
    "quantity from items i where i.order_id = o.id) as b from orders o",
    "select id from orders o where customer not in (select v.customer from visits v where v.page = 'a' and "
    "v.customer > 2 and v.customer = o.amount + 1)",
    'select id as "order", amount as "group", count(*) over () as count, customer as row from orders order by price',
    "select o.id, l.n from customers c, orders o left join lateral (select i.line as n from items i where i.order_id "
    "= c.id and i.quantity = o.amount) l on true where c.id = o.customer",
    "select customer, page, amount from (select customer, page from visits) v natural full join orders",
)
"""Maintained by operators alone."""

REEVALUATED = (
    "select array(select id from orders order by id) as a",
    "with a as (select max(id) as m from orders) values ((select m from a), 1), (2, 3)",
    "select count(*) as n from customers group by upper(name) collate noaccent.nocase",
    "select o.id, c.id as cid from orders o cross join customers c",
    "select o.id, c.id as cid from orders o, customers c where o.amount < c.since",
    "select o.id, c.id as cid from orders o left join customers c on o.amount < c.since",
    "select id from orders o where exists (select 1 from customers c where c.since < o.amount)",
    "with recursive r(id, n) as (select id, 1 from orders where amount = 1 union select r.id, n + 1 from "
    "r, customers c where n < 3 and c.id > r.n) select * from r",
    "select a.id, b.id as bid from orders a asof join items b0 on a.moment >= b0.moment and a.id = "
    "b0.order_id join orders b on b.id = a.id",
    "select o.id, i.line, i.quantity from orders o asof left join (select * from items qualify "
    "row_number() over (partition by order_id, moment order by line) = 1) i on o.id = i.order_id and "
    "o.moment >= i.moment",
    "select id from orders limit 10 percent",
    "select * from (pivot orders on amount in (0, 1, 2) using count(*) group by customer)",
    "select id, unnest(tags) as a, unnest(list_value(1, 2)) as b from orders",
    "select o.id, c.id as c from orders o full join customers c on true",
    "select o.id from orders o semi join customers c on o.amount < c.since",
    "select o.id from orders o anti join customers c on o.amount < c.since",
    "select o.id, p.id as p from (select id from orders order by id) o positional join (select id from "
    "customers order by id) p",
    "select id, (select count(*) from items i where i.quantity > o.amount) as s from orders o",
    "select id from orders o where exists (select 1 from items i where i.order_id = o.id having count(*) > 1)",
)
"""With a part that is re-evaluated."""
