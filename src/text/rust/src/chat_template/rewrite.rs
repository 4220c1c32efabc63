//! Rebuilds a syntax tree so that everything where Python and minijinja disagree becomes a call of ours.
//!
//! `a + b` becomes the filter `py.add`, `a.b` becomes `py.attribute`, `a.f(x)` becomes `py.method`, and so on. A filter
//! is the cheapest call of the machine, and its name may hold a dot, which no template can spell as one of ours by
//! accident. Truthiness, `and`, `or`, `not`, scopes and statements stay as they are: they agree.

use minijinja::machinery::ast::*;
use minijinja::machinery::Span;
use minijinja::Value;

fn call<'a>(name: &'a str, subject: Expr<'a>, args: Vec<CallArg<'a>>, span: Span) -> Expr<'a> {
    Expr::Filter(Spanned::new(Filter { name, expr: Some(subject), args }, span))
}

fn constant<'a>(value: Value, span: Span) -> Expr<'a> {
    Expr::Const(Spanned::new(Const { value }, span))
}

fn arguments<'a>(args: &[CallArg<'a>]) -> Vec<CallArg<'a>> {
    args.iter()
        .map(|arg| match arg {
            CallArg::Pos(e) => CallArg::Pos(expression(e)),
            CallArg::Kwarg(name, e) => CallArg::Kwarg(name, expression(e)),
            CallArg::PosSplat(e) => CallArg::PosSplat(expression(e)),
            CallArg::KwargSplat(e) => CallArg::KwargSplat(expression(e)),
        })
        .collect()
}

fn expressions<'a>(items: &[Expr<'a>]) -> Vec<Expr<'a>> {
    items.iter().map(expression).collect()
}

fn operator_name(op: BinOpKind) -> Option<&'static str> {
    Some(match op {
        BinOpKind::ScAnd | BinOpKind::ScOr => return None,
        BinOpKind::Eq => "py.eq",
        BinOpKind::Ne => "py.ne",
        BinOpKind::Lt => "py.lt",
        BinOpKind::Lte => "py.le",
        BinOpKind::Gt => "py.gt",
        BinOpKind::Gte => "py.ge",
        BinOpKind::In => "py.in",
        BinOpKind::Add => "py.add",
        BinOpKind::Sub => "py.sub",
        BinOpKind::Mul => "py.mul",
        BinOpKind::Div => "py.div",
        BinOpKind::FloorDiv => "py.floordiv",
        BinOpKind::Rem => "py.mod",
        BinOpKind::Pow => "py.pow",
        BinOpKind::Concat => "py.concat",
    })
}

fn comparison_name(op: CompareOpKind) -> &'static str {
    match op {
        CompareOpKind::Eq => "eq",
        CompareOpKind::Ne => "ne",
        CompareOpKind::Lt => "lt",
        CompareOpKind::Lte => "le",
        CompareOpKind::Gt => "gt",
        CompareOpKind::Gte => "ge",
        CompareOpKind::In => "in",
        CompareOpKind::NotIn => "not in",
    }
}

fn binary<'a>(node: &Spanned<BinOp<'a>>) -> Expr<'a> {
    let (left, right) = (expression(&node.left), expression(&node.right));
    match operator_name(node.op) {
        Some(name) => call(name, left, vec![CallArg::Pos(right)], node.span()),
        None => Expr::BinOp(Spanned::new(BinOp { op: node.op, left, right }, node.span())),
    }
}

/// `a < b <= c` as one call; operands have no side effects, so evaluating all of them changes nothing.
fn chain<'a>(node: &Spanned<Compare<'a>>) -> Expr<'a> {
    let mut args = Vec::new();
    for op in &node.ops {
        args.push(CallArg::Pos(constant(Value::from(comparison_name(op.op)), node.span())));
        args.push(CallArg::Pos(expression(&op.expr)));
    }
    call("py.chain", expression(&node.expr), args, node.span())
}

fn slice<'a>(node: &Spanned<Slice<'a>>) -> Expr<'a> {
    let part = |e: &Option<Expr<'a>>| {
        CallArg::Pos(e.as_ref().map_or_else(|| constant(Value::from(()), node.span()), expression))
    };
    let args = vec![part(&node.start), part(&node.stop), part(&node.step)];
    call("py.slice", expression(&node.expr), args, node.span())
}

fn is_block_call(node: &Call) -> bool {
    matches!(&node.expr, Expr::GetAttr(attr) if matches!(&attr.expr, Expr::Var(v) if v.id == "self"))
}

fn plain_call<'a>(node: &Spanned<Call<'a>>) -> Spanned<Call<'a>> {
    // The callee keeps its shape: the machine recognises names, `self.block` and methods by it.
    let callee = match &node.expr {
        Expr::GetAttr(attr) => {
            Expr::GetAttr(Spanned::new(GetAttr { expr: expression(&attr.expr), name: attr.name }, attr.span()))
        }
        other => expression(other),
    };
    Spanned::new(Call { expr: callee, args: arguments(&node.args) }, node.span())
}

fn any_call<'a>(node: &Spanned<Call<'a>>) -> Expr<'a> {
    match &node.expr {
        Expr::GetAttr(attr) if !is_block_call(node) => {
            let mut args = vec![CallArg::Pos(constant(Value::from(attr.name), attr.span()))];
            args.extend(arguments(&node.args));
            call("py.method", expression(&attr.expr), args, node.span())
        }
        _ => Expr::Call(plain_call(node)),
    }
}

fn unary<'a>(node: &Spanned<UnaryOp<'a>>) -> Expr<'a> {
    let operand = expression(&node.expr);
    match node.op {
        UnaryOpKind::Neg => call("py.neg", operand, vec![], node.span()),
        UnaryOpKind::Not => Expr::UnaryOp(Spanned::new(UnaryOp { op: UnaryOpKind::Not, expr: operand }, node.span())),
    }
}

fn attribute<'a>(node: &Spanned<GetAttr<'a>>) -> Expr<'a> {
    let name = CallArg::Pos(constant(Value::from(node.name), node.span()));
    call("py.attribute", expression(&node.expr), vec![name], node.span())
}

/// Containers that a template builds may only nest so deep; see `value::check_depth`.
fn shallow<'a>(made: Expr<'a>) -> Expr<'a> {
    let span = made.span();
    match made.as_const() {
        Some(_) => made,
        None => call("py.shallow", made, vec![], span),
    }
}

/// What is stored in a namespace could build a chain, or a circle; see `value::check_stored`.
fn assigned<'a>(target: &Expr<'a>, value: &Expr<'a>) -> Expr<'a> {
    match target {
        Expr::GetAttr(_) => call("py.stored", expression(value), vec![], value.span()),
        _ => expression(value),
    }
}

fn expression<'a>(node: &Expr<'a>) -> Expr<'a> {
    match node {
        Expr::Var(v) => Expr::Var(Spanned::new(Var { id: v.id }, v.span())),
        Expr::Const(c) => constant(c.value.clone(), c.span()),
        Expr::Slice(s) => slice(s),
        Expr::UnaryOp(u) => unary(u),
        Expr::BinOp(b) => binary(b),
        Expr::Compare(c) => chain(c),
        Expr::IfExpr(i) => Expr::IfExpr(Spanned::new(
            IfExpr {
                test_expr: expression(&i.test_expr),
                true_expr: expression(&i.true_expr),
                false_expr: i.false_expr.as_ref().map(expression),
            },
            i.span(),
        )),
        Expr::Filter(f) => Expr::Filter(Spanned::new(
            Filter { name: f.name, expr: f.expr.as_ref().map(expression), args: arguments(&f.args) },
            f.span(),
        )),
        Expr::Test(t) => Expr::Test(Spanned::new(
            Test { name: t.name, expr: expression(&t.expr), args: arguments(&t.args) },
            t.span(),
        )),
        Expr::GetAttr(g) => attribute(g),
        Expr::GetItem(g) => {
            call("py.item", expression(&g.expr), vec![CallArg::Pos(expression(&g.subscript_expr))], g.span())
        }
        Expr::Call(c) => any_call(c),
        Expr::List(l) => shallow(Expr::List(Spanned::new(List { items: expressions(&l.items) }, l.span()))),
        Expr::Tuple(t) => shallow(Expr::Tuple(Spanned::new(Tuple { items: expressions(&t.items) }, t.span()))),
        Expr::Map(m) => shallow(Expr::Map(Spanned::new(
            Map { keys: expressions(&m.keys), values: expressions(&m.values) },
            m.span(),
        ))),
    }
}

/// The target of an assignment: names, tuples of them, and `namespace.attribute` keep their shape.
fn target<'a>(node: &Expr<'a>) -> Expr<'a> {
    match node {
        Expr::GetAttr(g) => Expr::GetAttr(Spanned::new(GetAttr { expr: expression(&g.expr), name: g.name }, g.span())),
        Expr::List(l) => Expr::List(Spanned::new(List { items: l.items.iter().map(target).collect() }, l.span())),
        Expr::Tuple(t) => Expr::Tuple(Spanned::new(Tuple { items: t.items.iter().map(target).collect() }, t.span())),
        other => expression(other),
    }
}

fn body<'a>(nodes: &[Stmt<'a>]) -> Vec<Stmt<'a>> {
    nodes.iter().map(statement).collect()
}

fn macro_declaration<'a>(node: &Spanned<Macro<'a>>) -> Spanned<Macro<'a>> {
    Spanned::new(
        Macro {
            name: node.name,
            args: node.args.iter().map(target).collect(),
            defaults: expressions(&node.defaults),
            body: body(&node.body),
        },
        node.span(),
    )
}

fn for_loop<'a>(node: &Spanned<ForLoop<'a>>) -> Stmt<'a> {
    let iter = call("py.iter", expression(&node.iter), vec![], node.iter.span());
    Stmt::ForLoop(Spanned::new(
        ForLoop {
            target: target(&node.target),
            iter,
            filter_expr: node.filter_expr.as_ref().map(expression),
            recursive: node.recursive,
            body: body(&node.body),
            else_body: body(&node.else_body),
        },
        node.span(),
    ))
}

fn scoped<'a>(node: &Stmt<'a>) -> Stmt<'a> {
    match node {
        Stmt::WithBlock(w) => Stmt::WithBlock(Spanned::new(
            WithBlock {
                assignments: w.assignments.iter().map(|(t, e)| (target(t), expression(e))).collect(),
                body: body(&w.body),
            },
            w.span(),
        )),
        Stmt::AutoEscape(a) => Stmt::AutoEscape(Spanned::new(
            AutoEscape { enabled: expression(&a.enabled), body: body(&a.body) },
            a.span(),
        )),
        Stmt::FilterBlock(f) => Stmt::FilterBlock(Spanned::new(
            FilterBlock { filter: expression(&f.filter), filter_span: f.filter_span, body: body(&f.body) },
            f.span(),
        )),
        Stmt::Block(b) => Stmt::Block(Spanned::new(
            Block { name: b.name, required: b.required, body: body(&b.body) },
            b.span(),
        )),
        Stmt::CallBlock(c) => Stmt::CallBlock(Spanned::new(
            CallBlock {
                call: plain_call(&c.call),
                call_expr_span: c.call_expr_span,
                macro_decl: macro_declaration(&c.macro_decl),
            },
            c.span(),
        )),
        other => loading(other),
    }
}

/// Statements that would load another template. There is no loader, so they fail when they run, as in jinja2.
fn loading<'a>(node: &Stmt<'a>) -> Stmt<'a> {
    match node {
        Stmt::Import(i) => Stmt::Import(Spanned::new(
            Import { expr: expression(&i.expr), name: target(&i.name) },
            i.span(),
        )),
        Stmt::FromImport(f) => Stmt::FromImport(Spanned::new(
            FromImport {
                expr: expression(&f.expr),
                names: f.names.iter().map(|(n, a)| (target(n), a.as_ref().map(target))).collect(),
            },
            f.span(),
        )),
        Stmt::Extends(e) => Stmt::Extends(Spanned::new(Extends { name: expression(&e.name) }, e.span())),
        Stmt::Include(i) => Stmt::Include(Spanned::new(
            Include { name: expression(&i.name), ignore_missing: i.ignore_missing },
            i.span(),
        )),
        other => statement(other),
    }
}

pub fn statement<'a>(node: &Stmt<'a>) -> Stmt<'a> {
    match node {
        Stmt::Template(t) => {
            Stmt::Template(Spanned::new(Template { children: body(&t.children) }, t.span()))
        }
        Stmt::EmitExpr(e) => Stmt::EmitExpr(Spanned::new(EmitExpr { expr: expression(&e.expr) }, e.span())),
        Stmt::EmitRaw(e) => Stmt::EmitRaw(Spanned::new(EmitRaw { raw: e.raw }, e.span())),
        Stmt::ForLoop(f) => for_loop(f),
        Stmt::IfCond(i) => Stmt::IfCond(Spanned::new(
            IfCond {
                expr: expression(&i.expr),
                true_body: body(&i.true_body),
                false_body: body(&i.false_body),
            },
            i.span(),
        )),
        Stmt::Set(s) => {
            let expr = assigned(&s.target, &s.expr);
            Stmt::Set(Spanned::new(Set { target: target(&s.target), expr }, s.span()))
        }
        Stmt::SetBlock(s) => Stmt::SetBlock(Spanned::new(
            SetBlock {
                target: target(&s.target),
                filter: s.filter.as_ref().map(expression),
                body: body(&s.body),
            },
            s.span(),
        )),
        Stmt::Macro(m) => Stmt::Macro(macro_declaration(m)),
        Stmt::Continue(c) => Stmt::Continue(Spanned::new(Continue, c.span())),
        Stmt::Break(b) => Stmt::Break(Spanned::new(Break, b.span())),
        Stmt::Do(d) => Stmt::Do(Spanned::new(Do { call: plain_call(&d.call) }, d.span())),
        Stmt::WithBlock(_) | Stmt::AutoEscape(_) | Stmt::FilterBlock(_) | Stmt::Block(_) | Stmt::CallBlock(_) => {
            scoped(node)
        }
        Stmt::Import(_) | Stmt::FromImport(_) | Stmt::Extends(_) | Stmt::Include(_) => loading(node),
    }
}
