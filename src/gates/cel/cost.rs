//! How much work a rule is on given facts, found before it runs: the interpreter has no limit of its own.
//!
//! Each node of the expression counts one, a call that walks through text also the text's length, and the inside of
//! `all`, `exists`, `map` and `filter` as often as the longest thing there is to iterate over. It is a bound, not an
//! estimate of the usual.

use ::cel::IdedExpr as Expression;
use ::cel::common::ast::{EntryExpr, Expr, operators};

use crate::gates::question::Question;
use crate::message::json::Value;

/// Bytes of text that are walked through in about the time of one step.
const BYTES_PER_STEP: u64 = 128;

/// What a rule's work depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Most items of anything that can be iterated over.
    items: u64,
    /// Bytes of text altogether.
    bytes: u64,
}

impl Size {
    pub(super) fn of(question: &Question, arguments: Option<Value<'_>>) -> Self {
        let asker = &question.principal;
        let bytes = arguments.map_or(0, |arguments| arguments.span().len());
        let items = arguments.map_or(0, longest).max(asker.roles.len()).max(asker.permissions.len());
        Self { items: (items as u64).saturating_add(16), bytes: (bytes as u64).saturating_add(1024) }
    }
}

/// Most items of any list or object within.
fn longest(value: Value<'_>) -> usize {
    let within = value.items().chain(value.entries().map(|(_, value)| value)).map(longest).max().unwrap_or(0);
    value.len().max(within)
}

/// A bound on the steps that `expression` takes.
pub(super) fn estimate(expression: &Expression, size: &Size) -> u64 {
    let sum = |all: &mut dyn Iterator<Item = &Expression>| {
        all.fold(1_u64, |sum, expression| sum.saturating_add(estimate(expression, size)))
    };
    match &expression.expr {
        Expr::Call(call) => {
            let parts = sum(&mut call.target.iter().map(|target| &**target).chain(&call.args));
            if walks(&call.func_name) { parts.saturating_add(size.bytes / BYTES_PER_STEP) } else { parts }
        }
        Expr::Comprehension(comprehension) => {
            let each = sum(&mut [&comprehension.loop_cond, &comprehension.loop_step].into_iter());
            // A list that the rule itself writes down or builds may be longer than what the call holds.
            let times = size.items.saturating_add(nodes(&comprehension.iter_range));
            let rest = [&comprehension.iter_range, &comprehension.accu_init, &comprehension.result];
            sum(&mut rest.into_iter()).saturating_add(each.saturating_mul(times))
        }
        Expr::List(list) => sum(&mut list.elements.iter()),
        Expr::Map(map) => sum(&mut map.entries.iter().flat_map(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
            EntryExpr::StructField(field) => vec![&field.value],
        })),
        Expr::Select(select) => sum(&mut std::iter::once(&*select.operand)),
        Expr::Struct(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => 1,
    }
}

/// Whether a call may look at every byte of a text or every item of a list.
fn walks(function: &str) -> bool {
    matches!(function, "matches" | "contains" | "string" | "bytes" | "size")
        || [operators::ADD, operators::IN, operators::EQUALS, operators::NOT_EQUALS].contains(&function)
}

fn nodes(expression: &Expression) -> u64 {
    estimate(expression, &Size { items: 1, bytes: 0 })
}
