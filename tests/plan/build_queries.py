"""Queries over the shop, by construct: what becomes operators, and what is re-evaluated."""

from __future__ import annotations

OPERATORS = (
    "select id, amount * 2 as a from orders where amount > 1 and price is not null",
    "select amount from orders",
    "select o.id, c.name from orders o join customers c on o.customer = c.id",
    "select o.id, c.name from orders o, customers c where o.customer = c.id and c.city = 'rome'",
    "select o.id, c.name, i.line from orders o, customers c, items i where i.order_id = o.id and o.customer = c.id",
    "select o.id, c.name from orders o left join customers c on o.customer = c.id and c.city = 'rome'",
    "select o.id, c.name from orders o right join customers c on o.customer = c.id",
    "select o.id, c.name from orders o full join customers c on o.customer = c.id and o.amount > 1",
    "select a.id, b.id as bid from orders a join orders b on a.customer = b.customer and a.id < b.id",
    "select customer, page, o.id from orders o join visits using (customer)",
    "select customer, page, amount from (select customer, page from visits) v natural full join orders",
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
)
"""Maintained by operators alone."""

REEVALUATED = (
    "select o.id, c.id as cid from orders o cross join customers c",
    "select o.id, c.id as cid from orders o, customers c where o.amount < c.since",
    "select o.id, c.id as cid from orders o left join customers c on o.amount < c.since",
    "select id from orders o where exists (select 1 from customers c where c.since < o.amount)",
    "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select n from r",
    "with recursive r(id, n) as (select id, 1 from orders where amount = 1 union select r.id, n + 1 from "
    "r, customers c where n < 3 and c.id > r.n) select * from r",
    "select a.id, b.id as bid from orders a asof join items b0 on a.moment >= b0.moment and a.id = "
    "b0.order_id join orders b on b.id = a.id",
    "select o.id, i.line, i.quantity from orders o asof left join (select * from items qualify "
    "row_number() over (partition by order_id, moment order by line) = 1) i on o.id = i.order_id and "
    "o.moment >= i.moment",
    "select id from orders limit 10 percent",
    "select count(*) from orders o where exists (select 1 from items i where i.order_id = o.id and exists"
    " (select 1 from customers c where c.id = i.product and c.since = o.amount))",
)
"""With a part that is re-evaluated."""
