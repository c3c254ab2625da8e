//! The definitions that were approved: schemas that are dear to check among them.

use super::world::Recorded;

/// These, and so many tools besides.
pub(crate) fn recorded(more: usize) -> &'static [Recorded] {
    let mut all = RECORDED.to_vec();
    all.extend((0..more).map(|n| {
        let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        (leak(format!("tool:more_{n}")), "cases:read", None, leak(format!(r#"{{"name":"more_{n}"}}"#)))
    }));
    Box::leak(all.into_boxed_slice())
}

const RECORDED: &[Recorded] = &[
    ("tool:free", "cases:read", None, r#"{"name":"free","inputSchema":{"type":"object"}}"#),
    (
        "tool:rows",
        "cases:read",
        None,
        r#"{"name":"rows","inputSchema":{"type":"object","required":["rows"],"additionalProperties":false,"properties":{"rows":{"type":"array","items":{"type":"object","required":["id","owner"],"additionalProperties":false,"properties":{"id":{"type":"integer","minimum":0},"open":{"type":"boolean"},"owner":{"type":"string","maxLength":100},"title":{"type":"string","maxLength":200}}}}}}}"#,
    ),
    (
        "tool:pattern",
        "cases:read",
        None,
        r#"{"name":"pattern","inputSchema":{"type":"object","properties":{"s":{"type":"string","pattern":"^(a|aa|[a-z]*a){1,20}$"}}}}"#,
    ),
    (
        "tool:unique",
        "cases:read",
        None,
        r#"{"name":"unique","inputSchema":{"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}}}"#,
    ),
    (
        "tool:double",
        "cases:read",
        None,
        r##"{"name":"double","inputSchema":{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}},"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"}]},"c":{"allOf":[{"$ref":"#/$defs/d"},{"$ref":"#/$defs/d"}]},"d":{"allOf":[{"type":"integer"},{"minimum":0}]}}}}"##,
    ),
    (
        "tool:any",
        "cases:read",
        None,
        r#"{"name":"any","inputSchema":{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"object","required":["b"]},{"type":"array"},{"const":-1},{"enum":[-2,-3]},{"type":"integer","minimum":1000000},{"type":"null"},{"type":"integer"}]}}}}}"#,
    ),
    (
        "tool:number",
        "cases:read",
        None,
        r#"{"name":"number","inputSchema":{"type":"object","properties":{"n":{"type":"integer","minimum":0,"multipleOf":3}}}}"#,
    ),
    (
        "tool:required",
        "cases:read",
        None,
        r#"{"name":"required","inputSchema":{"type":"object","required":["r00","r01","r02","r03","r04","r05","r06","r07","r08","r09","r10","r11","r12","r13","r14","r15","r16","r17","r18","r19","r20","r21","r22","r23","r24","r25","r26","r27","r28","r29","r30","r31","r32","r33","r34","r35","r36","r37","r38","r39"]}}"#,
    ),
    (
        "tool:names",
        "cases:read",
        None,
        r#"{"name":"names","inputSchema":{"type":"object","patternProperties":{"^x-[a-z0-9]+$":{"type":"string"},"[0-9]$":{"type":"integer"}},"propertyNames":{"maxLength":40,"pattern":"^[a-z0-9_]+$"},"additionalProperties":{"type":"integer"}}}"#,
    ),
    (
        "tool:dependent",
        "cases:read",
        None,
        r#"{"name":"dependent","inputSchema":{"type":"object","dependentSchemas":{"d0":{"required":["e0"],"minProperties":2},"d1":{"required":["e1"],"minProperties":2},"d2":{"required":["e2"],"minProperties":2},"d3":{"required":["e3"],"minProperties":2},"d4":{"required":["e4"],"minProperties":2},"d5":{"required":["e5"],"minProperties":2},"d6":{"required":["e6"],"minProperties":2},"d7":{"required":["e7"],"minProperties":2},"d8":{"required":["e8"],"minProperties":2},"d9":{"required":["e9"],"minProperties":2},"d10":{"required":["e10"],"minProperties":2},"d11":{"required":["e11"],"minProperties":2}}}}"#,
    ),
    (
        "tool:unevaluated",
        "cases:read",
        None,
        r#"{"name":"unevaluated","inputSchema":{"type":"object","allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"type":"integer"}}},{"patternProperties":{"^x":{"type":"integer"}}}],"unevaluatedProperties":{"type":"integer"}}}"#,
    ),
    (
        "tool:contains",
        "cases:read",
        None,
        r#"{"name":"contains","inputSchema":{"type":"object","properties":{"a":{"type":"array","contains":{"type":"object","required":["b"]},"minContains":0,"maxContains":3}}}}"#,
    ),
    (
        "tool:multiple",
        "cases:read",
        None,
        r#"{"name":"multiple","inputSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"number","minimum":0,"multipleOf":3}}}}}"#,
    ),
    (
        "tool:enum",
        "cases:read",
        None,
        r#"{"name":"enum","inputSchema":{"type":"object","properties":{"a":{"type":"array","items":{"enum":[-1,-2,-3,-4,-5,-6,-7,-8,-9,-10,-11,-12,-13,-14,-15,-16,-17,-18,-19,-20,-21,-22,-23,-24,-25,-26,-27,-28,-29,-30,-31,-32,-33,-34,-35,-36,-37,-38,-39,-40]}}}}}"#,
    ),
    (
        "tool:text",
        "cases:read",
        None,
        r#"{"name":"text","inputSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","pattern":"^[a-z0-9é]*$","maxLength":9,"format":"uri-reference"}}}}}"#,
    ),
    (
        "tool:unevaluated_items",
        "cases:read",
        None,
        r#"{"name":"unevaluated_items","inputSchema":{"type":"object","properties":{"a":{"type":"array","prefixItems":[true],"anyOf":[{"contains":{"const":-1}},{"contains":{"type":"integer"}}],"unevaluatedItems":{"type":"string"}}}}}"#,
    ),
    (
        "tool:mirrored",
        "cases:read",
        None,
        r#"{"name":"mirrored","inputSchema":{"type":"object","properties":{"m00":{"type":"string","x-mcp-header":"M00"},"m01":{"type":"string","x-mcp-header":"M01"},"m02":{"type":"string","x-mcp-header":"M02"},"m03":{"type":"string","x-mcp-header":"M03"},"m04":{"type":"string","x-mcp-header":"M04"},"m05":{"type":"string","x-mcp-header":"M05"},"m06":{"type":"string","x-mcp-header":"M06"},"m07":{"type":"string","x-mcp-header":"M07"},"m08":{"type":"string","x-mcp-header":"M08"},"m09":{"type":"string","x-mcp-header":"M09"},"m10":{"type":"string","x-mcp-header":"M10"},"m11":{"type":"string","x-mcp-header":"M11"},"m12":{"type":"string","x-mcp-header":"M12"},"m13":{"type":"string","x-mcp-header":"M13"},"m14":{"type":"string","x-mcp-header":"M14"},"m15":{"type":"string","x-mcp-header":"M15"},"m16":{"type":"string","x-mcp-header":"M16"},"m17":{"type":"string","x-mcp-header":"M17"},"m18":{"type":"string","x-mcp-header":"M18"},"m19":{"type":"string","x-mcp-header":"M19"}}}}"#,
    ),
    ("resource:case", "cases:read", Some("cases://case/{id}"), r#"{"name":"case","uriTemplate":"cases://case/{id}"}"#),
    (
        "resource:deep",
        "cases:read",
        Some("cases://{+a}a{+b}a{+c}"),
        r#"{"name":"deep","uriTemplate":"cases://{+a}a{+b}a{+c}"}"#,
    ),
    (
        "resource:find",
        "cases:read",
        Some("cases://{+p}{?q,r,s}"),
        r#"{"name":"find","uriTemplate":"cases://{+p}{?q,r,s}"}"#,
    ),
];
