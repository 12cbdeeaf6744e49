//! What templates may do: nothing that makes much of little. The engine counts steps, and one step can double a text.
//!
//! Without variables that are set to something made, without loops that call themselves and without products, whatever
//! an expression makes is at most a few times as long as the longest value it began with. What is written goes to a
//! [`Limited`] writer. So bytes are bounded by the values, and time by steps times bytes.

use std::io;

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;

/// Texts and items that one expression may put together.
const MAX_JOINED: usize = 32;

/// Refuses a template that could grow, and says what it must not use. One that cannot be read is no concern here.
pub(super) fn check_template_growth(text: &str) -> Result<(), String> {
    match parse(text, "template", SyntaxConfig::default()) {
        Ok(template) => check_statement_growth(&template),
        Err(_) => Ok(()),
    }
}

fn check_statement_growth(statement: &Stmt<'_>) -> Result<(), String> {
    match statement {
        Stmt::Template(template) => check_statements_growth(&template.children),
        Stmt::EmitRaw(_) => Ok(()),
        Stmt::EmitExpr(emit) => check_expression_growth(&emit.expr),
        Stmt::ForLoop(each) if each.recursive => Err(growth_unsupported_in_templates("recursive loops")),
        Stmt::ForLoop(each) => {
            check_expression_growth(&each.iter)?;
            each.filter_expr.as_ref().map_or(Ok(()), check_expression_growth)?;
            check_statements_growth(&each.body)?;
            check_statements_growth(&each.else_body)
        }
        Stmt::IfCond(cond) => {
            check_expression_growth(&cond.expr)?;
            check_statements_growth(&cond.true_body)?;
            check_statements_growth(&cond.false_body)
        }
        Stmt::Set(set) if is_name_without_growth(&set.target) && is_plain_without_growth(&set.expr) => Ok(()),
        Stmt::Set(_) => Err(growth_unsupported_in_templates("{% set %} to anything but a value or a name")),
        Stmt::WithBlock(with)
            if with
                .assignments
                .iter()
                .all(|(name, value)| is_name_without_growth(name) && is_plain_without_growth(value)) =>
        {
            check_statements_growth(&with.body)
        }
        Stmt::WithBlock(_) => Err(growth_unsupported_in_templates("{% with %} to anything but a value or a name")),
        Stmt::AutoEscape(block) => check_statements_growth(&block.body),
        Stmt::SetBlock(_) => Err(growth_unsupported_in_templates("{% set %} with a block")),
        Stmt::FilterBlock(_) => Err(growth_unsupported_in_templates("{% filter %}")),
        _ => Err(growth_unsupported_in_templates("this kind of block")),
    }
}

fn check_statements_growth(all: &[Stmt<'_>]) -> Result<(), String> {
    all.iter().try_for_each(check_statement_growth)
}

fn check_expression_growth(whole: &Expr<'_>) -> Result<(), String> {
    let mut joined = 0;
    walk_growth_expression(whole, &mut joined)?;
    match joined <= MAX_JOINED {
        true => Ok(()),
        false => Err(format!("an expression puts at most {MAX_JOINED} values together: {joined}")),
    }
}

fn walk_growth_expression(expr: &Expr<'_>, joined: &mut usize) -> Result<(), String> {
    match expr {
        Expr::Var(_) | Expr::Const(_) => Ok(()),
        Expr::Slice(slice) => {
            let ends = [&slice.start, &slice.stop, &slice.step];
            walk_all_for_growth(std::iter::once(&slice.expr).chain(ends.into_iter().flatten()), joined)
        }
        Expr::UnaryOp(unary) => walk_growth_expression(&unary.expr, joined),
        Expr::BinOp(binary) => {
            match binary.op {
                BinOpKind::Mul | BinOpKind::Pow => return Err(growth_unsupported_in_templates("products")),
                BinOpKind::Add | BinOpKind::Concat => *joined += 1,
                BinOpKind::Eq
                | BinOpKind::Ne
                | BinOpKind::Lt
                | BinOpKind::Lte
                | BinOpKind::Gt
                | BinOpKind::Gte
                | BinOpKind::ScAnd
                | BinOpKind::ScOr
                | BinOpKind::Sub
                | BinOpKind::Div
                | BinOpKind::FloorDiv
                | BinOpKind::Rem
                | BinOpKind::In => {}
            }
            walk_all_for_growth([&binary.left, &binary.right], joined)
        }
        Expr::Compare(compare) => {
            walk_all_for_growth(std::iter::once(&compare.expr).chain(compare.ops.iter().map(|op| &op.expr)), joined)
        }
        Expr::IfExpr(cond) => {
            walk_all_for_growth([&cond.test_expr, &cond.true_expr].into_iter().chain(&cond.false_expr), joined)
        }
        Expr::Filter(filter) => {
            walk_all_for_growth(filter.expr.iter().chain(filter.args.iter().map(growth_argument_expression)), joined)
        }
        Expr::Test(test) => walk_all_for_growth(
            std::iter::once(&test.expr).chain(test.args.iter().map(growth_argument_expression)),
            joined,
        ),
        Expr::GetAttr(get) => walk_growth_expression(&get.expr, joined),
        Expr::GetItem(get) => walk_all_for_growth([&get.expr, &get.subscript_expr], joined),
        Expr::Call(_) => Err(growth_unsupported_in_templates("calls")),
        Expr::List(list) => walk_growth_items(&list.items, joined),
        Expr::Tuple(tuple) => walk_growth_items(&tuple.items, joined),
        Expr::Map(map) => walk_growth_items(&map.values, joined),
    }
}

fn walk_growth_items(each: &[Expr<'_>], joined: &mut usize) -> Result<(), String> {
    // Constants are as long as they were written.
    *joined += each.iter().filter(|item| !matches!(item, Expr::Const(_))).count();
    walk_all_for_growth(each, joined)
}

fn walk_all_for_growth<'a>(each: impl IntoIterator<Item = &'a Expr<'a>>, joined: &mut usize) -> Result<(), String> {
    each.into_iter().try_for_each(|expr| walk_growth_expression(expr, joined))
}

fn growth_argument_expression<'a>(argument: &'a CallArg<'a>) -> &'a Expr<'a> {
    match argument {
        CallArg::Pos(expr) | CallArg::Kwarg(_, expr) | CallArg::PosSplat(expr) | CallArg::KwargSplat(expr) => expr,
    }
}

fn is_name_without_growth(expr: &Expr<'_>) -> bool {
    matches!(expr, Expr::Var(_))
}

/// A value, or another name for one: nothing is made by it.
fn is_plain_without_growth(expr: &Expr<'_>) -> bool {
    match expr {
        Expr::Var(_) | Expr::Const(_) => true,
        Expr::GetAttr(get) => is_plain_without_growth(&get.expr),
        Expr::GetItem(get) => is_plain_without_growth(&get.expr) && is_plain_without_growth(&get.subscript_expr),
        Expr::Slice(_)
        | Expr::UnaryOp(_)
        | Expr::BinOp(_)
        | Expr::Compare(_)
        | Expr::IfExpr(_)
        | Expr::Filter(_)
        | Expr::Test(_)
        | Expr::Call(_)
        | Expr::List(_)
        | Expr::Tuple(_)
        | Expr::Map(_) => false,
    }
}

fn growth_unsupported_in_templates(what: &str) -> String {
    format!("templates of recipes have no {what}")
}

/// Takes so many bytes and refuses the rest.
pub(super) struct Limited {
    pub(super) bytes: Vec<u8>,
    pub(super) limit: usize,
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::Error::other(format!("it is larger than {} bytes", self.limit)));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
