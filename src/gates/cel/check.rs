//! The type check of a rule: what is known about `principal`, `call` and the language's functions is held against it,
//! so that a misspelt field or a rule that is no condition is found when the configuration loads, not on the first call.
//!
//! `arguments` is open: its fields have whatever type the caller sends, and the evaluation refuses what does not fit.

use ::cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators as op};
use ::cel::{IdedExpr as Expression, Program};

/// What is wrong, and the node that shows it.
pub(super) struct Fault {
    pub(super) at: u64,
    pub(super) message: String,
}

/// What is known of a value's type.
#[derive(Clone, Debug, PartialEq)]
enum Type {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    List(Box<Type>),
    /// An object whose members are not known.
    Map,
    /// An object that has exactly these members.
    Fixed(&'static str, &'static [(&'static str, Member)]),
    /// Anything.
    Open,
}

/// The type of a member of a fixed object.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Member {
    Text,
    Texts,
}

const PRINCIPAL: &[(&str, Member)] = &[
    ("issuer", Member::Text),
    ("subject", Member::Text),
    ("email", Member::Text),
    ("roles", Member::Texts),
    ("permissions", Member::Texts),
];
const CALL: &[(&str, Member)] = &[
    ("server", Member::Text),
    ("method", Member::Text),
    ("name", Member::Text),
    ("capability", Member::Text),
    ("capabilities", Member::Texts),
    ("authority", Member::Text),
    ("path", Member::Text),
];
/// Functions that can be called, beside operators and macros.
const FUNCTIONS: &[&str] = &[
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "dyn",
    "type",
];

impl Type {
    fn name(&self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::Null => "null",
            Self::List(_) => "list",
            Self::Map | Self::Fixed(..) => "map",
            Self::Open => "any type",
        }
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double | Self::Open)
    }

    /// Whether values of both may be equal.
    fn meets(&self, other: &Self) -> bool {
        *self == Self::Open
            || *other == Self::Open
            || (self.is_number() && other.is_number())
            || self.name() == other.name()
            || *self == Self::Null
            || *other == Self::Null
    }

    fn join(self, other: &Self) -> Self {
        if self == *other { self } else { Self::Open }
    }
}

type Checked = Result<Type, Fault>;
/// The variables of the macros around an expression, innermost last.
type Scope = Vec<(String, Type)>;

/// Checks that a program is a condition over what there is.
pub(super) fn rule(program: &Program) -> Result<(), Fault> {
    let root = program.expression();
    match check(root, &mut Vec::new())? {
        Type::Bool | Type::Open => Ok(()),
        other => Err(fault(root, format!("expected a condition (true or false), found {}; compare it", other.name()))),
    }
}

fn fault(at: &Expression, message: String) -> Fault {
    Fault { at: at.id, message }
}

fn check(expression: &Expression, scope: &mut Scope) -> Checked {
    match &expression.expr {
        Expr::Literal(literal) => Ok(match literal {
            LiteralValue::Boolean(_) => Type::Bool,
            LiteralValue::Bytes(_) => Type::Bytes,
            LiteralValue::Double(_) => Type::Double,
            LiteralValue::Int(_) => Type::Int,
            LiteralValue::Null => Type::Null,
            LiteralValue::String(_) => Type::Text,
            LiteralValue::UInt(_) => Type::Uint,
        }),
        Expr::Ident(name) => variable(expression, name, scope),
        Expr::Select(select) => {
            let operand = check(&select.operand, scope)?;
            let member = member(expression, &operand, &select.field)?;
            Ok(if select.test { Type::Bool } else { member })
        }
        Expr::Call(call) => {
            let mut types = Vec::with_capacity(call.args.len() + 1);
            for argument in call.target.iter().map(|target| &**target).chain(&call.args) {
                types.push(check(argument, scope)?);
            }
            function(expression, &call.func_name, &types)
        }
        Expr::List(list) => {
            let mut item = None;
            for element in &list.elements {
                let found = check(element, scope)?;
                item = Some(item.map_or(found.clone(), |before: Type| before.join(&found)));
            }
            Ok(Type::List(Box::new(item.unwrap_or(Type::Open))))
        }
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    check(&entry.key, scope)?;
                    check(&entry.value, scope)?;
                }
            }
            Ok(Type::Map)
        }
        Expr::Comprehension(comprehension) => iteration(comprehension, scope),
        Expr::Struct(_) => {
            Err(fault(expression, "expected no message construction, which rules do not have".to_owned()))
        }
        Expr::Unspecified => Err(fault(expression, "expected an expression".to_owned())),
    }
}

fn variable(at: &Expression, name: &str, scope: &Scope) -> Checked {
    if let Some((_, known)) = scope.iter().rev().find(|(own, _)| own == name) {
        return Ok(known.clone());
    }
    match name {
        "principal" => Ok(Type::Fixed("principal", PRINCIPAL)),
        "call" => Ok(Type::Fixed("call", CALL)),
        "arguments" => Ok(Type::Open),
        _ if FUNCTIONS.contains(&name) => Ok(Type::Open),
        _ => Err(fault(at, format!("expected principal, call or arguments, found `{name}`; correct the name"))),
    }
}

fn member(at: &Expression, operand: &Type, field: &str) -> Checked {
    match operand {
        Type::Open | Type::Map => Ok(Type::Open),
        Type::Fixed(name, members) => match members.iter().find(|(own, _)| *own == field) {
            Some((_, Member::Text)) => Ok(Type::Text),
            Some((_, Member::Texts)) => Ok(Type::List(Box::new(Type::Text))),
            None => {
                let known: Vec<&str> = members.iter().map(|(own, _)| *own).collect();
                Err(fault(
                    at,
                    format!("expected a field of {name} ({}), found `{field}`; correct the name", known.join(", ")),
                ))
            }
        },
        other => Err(fault(at, format!("expected a map to take the field `{field}` of, found {}", other.name()))),
    }
}

fn iteration(comprehension: &ComprehensionExpr, scope: &mut Scope) -> Checked {
    let item = match check(&comprehension.iter_range, scope)? {
        Type::List(item) => *item,
        Type::Map | Type::Fixed(..) => Type::Text,
        Type::Open => Type::Open,
        other => {
            return Err(fault(&comprehension.iter_range, format!("expected a list or a map, found {}", other.name())));
        }
    };
    let start = check(&comprehension.accu_init, scope)?;
    let accumulated = if let Type::List(_) = start { Type::List(Box::new(Type::Open)) } else { start };
    let outer = scope.len();
    scope.push((comprehension.iter_var.clone(), item));
    if let Some(second) = &comprehension.iter_var2 {
        scope.push((second.clone(), Type::Open));
    }
    scope.push((comprehension.accu_var.clone(), accumulated));
    let inside = check(&comprehension.loop_cond, scope)
        .and_then(|_| check(&comprehension.loop_step, scope))
        .and_then(|_| check(&comprehension.result, scope));
    scope.truncate(outer);
    inside
}

fn function(at: &Expression, name: &str, types: &[Type]) -> Checked {
    let wrong = |expected: &str| {
        let found: Vec<&str> = types.iter().map(Type::name).collect();
        Err(fault(at, format!("expected {expected} for `{}`, found {}", spoken(name), found.join(" and "))))
    };
    let all = |fits: &dyn Fn(&Type) -> bool| types.iter().all(fits);
    match (name, types) {
        (op::LOGICAL_AND | op::LOGICAL_OR | op::LOGICAL_NOT | op::NOT_STRICTLY_FALSE, _) => {
            if all(&|own| matches!(own, Type::Bool | Type::Open)) { Ok(Type::Bool) } else { wrong("conditions") }
        }
        (op::EQUALS | op::NOT_EQUALS, [left, right]) => {
            if left.meets(right) {
                Ok(Type::Bool)
            } else {
                wrong("values of one type")
            }
        }
        (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [left, right]) => {
            let ordered = |own: &Type| own.is_number() || matches!(own, Type::Text | Type::Bytes | Type::Bool);
            if left.meets(right) && all(&ordered) { Ok(Type::Bool) } else { wrong("two numbers or two texts") }
        }
        (op::IN, [item, within]) => match within {
            Type::List(own) if item.meets(own) => Ok(Type::Bool),
            Type::Open | Type::Map | Type::Fixed(..) => Ok(Type::Bool),
            _ => wrong("a list or map of such values on the right"),
        },
        (op::CONDITIONAL, [condition, yes, no]) => match condition {
            Type::Bool | Type::Open => Ok(yes.clone().join(no)),
            _ => wrong("a condition first"),
        },
        (op::INDEX, [from, _]) => match from {
            Type::List(item) => Ok((**item).clone()),
            Type::Open | Type::Map | Type::Fixed(..) => Ok(Type::Open),
            _ => wrong("a list or a map"),
        },
        (op::ADD, [left, right]) => match (left, right) {
            (Type::List(_), Type::List(_) | Type::Open) => Ok(left.clone()),
            _ if left.meets(right) && !all(&|own| matches!(own, Type::Bool | Type::Null)) => {
                Ok(if left == right { left.clone() } else { Type::Open })
            }
            _ => wrong("two values of one type"),
        },
        (op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO | op::NEGATE, _) => match types {
            [first, ..] if all(&Type::is_number) => {
                Ok(if all(&|own| own == first) { first.clone() } else { Type::Open })
            }
            _ => wrong("numbers"),
        },
        ("size" | "int", _) => Ok(Type::Int),
        ("uint", _) => Ok(Type::Uint),
        ("double", _) => Ok(Type::Double),
        ("string", _) => Ok(Type::Text),
        ("bytes", _) => Ok(Type::Bytes),
        ("bool", _) => Ok(Type::Bool),
        ("dyn" | "type", _) => Ok(Type::Open),
        ("contains" | "startsWith" | "endsWith" | "matches", [own, other]) => {
            let text = |own: &Type| matches!(own, Type::Text | Type::Bytes | Type::Open);
            let list = name == "contains" && matches!(own, Type::List(_) | Type::Map);
            if (text(own) && text(other)) || list { Ok(Type::Bool) } else { wrong("two texts") }
        }
        _ => Err(fault(
            at,
            format!("expected an operator, a macro or one of {}, found `{}`", FUNCTIONS.join(", "), spoken(name)),
        )),
    }
}

/// An operator as it is written: `_<=_` is `<=`.
fn spoken(name: &str) -> &str {
    let inner = name.trim_matches('_');
    if inner.is_empty() { name } else { inner }
}
