//! Recipes: those that goose's people write are read and filled in, hostile ones are refused with a reason.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use gander_agent::recipe::{self, Check, FillSources, Flaw, Recipe, Values};
use serde_json::{Value, json};

const TRIP: &str = r#"
version: "1.0.0"
title: Trip planner
description: Plans a trip of {{ days }} days
instructions: |
  You plan trips. Be brief.
  {% if rail %}Only trains.{% endif %}
prompt: "Plan {{ days }} days in {{ city }}, beginning {{ start }}. ContextFiles: {{ notes }}"
activities: ["Another city than {{ city }}"]
parameters:
  - {key: city, input_type: select, requirement: required, description: Where, options: [Bern, Turin]}
  - {key: days, input_type: number, requirement: optional, description: How long, default: "3"}
  - {key: rail, input_type: boolean, requirement: optional, description: By train?, default: "true"}
  - {key: start, input_type: date, requirement: user_prompt, description: When}
  - {key: notes, input_type: file, requirement: required, description: What to know}
extensions:
  - {type: builtin, name: developer, display_name: Developer, timeout: 300, bundled: true}
settings: {goose_provider: anthropic, goose_model: claude-sonnet-4, temperature: 0.7, max_turns: 30}
response:
  json_schema: {type: object, properties: {stops: {type: array}}, required: [stops]}
retry:
  max_retries: 2
  timeout_seconds: 30
  checks: [{type: shell, command: "test -s {{ city }}.md"}]
  on_failure: "rm -f {{ city }}.md"
sub_recipes:
  - {name: weather, path: "{{ recipe_dir }}/weather.yaml", values: {place: "{{ city }}"}}
author: {contact: ada}
"#;

fn fill(recipe: &Recipe, given: &[(&str, &str)]) -> Result<Recipe, Flaw> {
    let values: Values = given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let read = |path: &str| match path {
        "notes.txt" => Ok("no planes {{ days }}".to_owned()),
        other => Err(format!("path is outside the workspace: {other}")),
    };
    recipe::fill_recipe_parameters(recipe, &values, &FillSources { folder: Some("/recipes"), read: &read })
}

#[test]
fn a_recipe_of_every_field_is_read_and_filled_in() {
    let recipe = recipe::parse_recipe(TRIP).unwrap();
    assert_eq!(recipe.parameters.len(), 5);
    let ready = fill(&recipe, &[("city", "Bern"), ("start", "2026-03-01"), ("notes", "notes.txt")]).unwrap();
    assert_eq!(ready.description, "Plans a trip of 3 days");
    assert_eq!(ready.instructions.as_deref(), Some("You plan trips. Be brief.\nOnly trains."));
    // What a file says is material: it is not filled in itself.
    let prompt = "Plan 3 days in Bern, beginning 2026-03-01. ContextFiles: no planes {{ days }}";
    assert_eq!(ready.prompt.as_deref(), Some(prompt));
    assert_eq!(ready.retry.as_ref().unwrap().checks, [Check::Shell { command: "test -s Bern.md".to_owned() }]);
    assert_eq!(ready.retry.unwrap().on_failure.as_deref(), Some("rm -f Bern.md"));
    let values = BTreeMap::from([("place".to_owned(), json!("Bern"))]);
    assert_eq!(ready.sub_recipes[0].values, Some(values));
    assert_eq!(ready.activities, ["Another city than Bern"]);
}

#[test]
fn json_is_as_good_as_yaml_and_a_link_holds_all_of_it() {
    let value: Value = json!({"title": "T", "description": "d", "prompt": "go – ü", "parameters": null, "x": 1});
    let recipe = recipe::parse_recipe(&value.to_string()).unwrap();
    assert_eq!(recipe.all_text(), "go – ü");
    let link = recipe::encode_recipe_link(&value);
    assert_eq!(recipe::decode_recipe_link(&format!("goose://recipe?config={link}")).unwrap(), (value, recipe));
    for bad in ["", "%%%", "e30", "bnVsbA"] {
        assert!(recipe::decode_recipe_link(bad).is_err(), "{bad}");
    }
}

#[test]
fn values_that_do_not_fit_are_named() {
    let recipe = recipe::parse_recipe(TRIP).unwrap();
    let good = [("city", "Bern"), ("start", "2026-03-01"), ("notes", "notes.txt")];
    let cases = [
        ("city", "Rome", "city: it must be one of Bern, Turin: Rome"),
        ("days", "many", "days: it must be a number: many"),
        ("rail", "yes", "rail: it must be true or false: yes"),
        ("start", "tomorrow", "start: it must be a day such as 2026-01-31: tomorrow"),
        ("notes", "../../etc/passwd", "notes: path is outside the workspace: ../../etc/passwd"),
        ("start", "2026-03-01\u{200b}", "start: its value holds characters that no reader sees"),
        ("cit", "Bern", "cit: unknown parameter, available: city, days, rail, start, notes"),
    ];
    for (key, value, expected) in cases {
        let mut given: Vec<(&str, &str)> = good.iter().copied().filter(|(known, _)| *known != key).collect();
        given.push((key, value));
        assert_eq!(fill(&recipe, &given).unwrap_err().to_string(), expected);
    }
    assert_eq!(
        fill(&recipe, &[]).unwrap_err().to_string(),
        "parameters: missing required parameter (use --param NAME=VALUE): city, start, notes"
    );
}

#[test]
fn no_value_becomes_part_of_a_command() {
    let text = "title: t\ndescription: d\nprompt: '{{ file }}'\n\
        parameters: [{key: file, input_type: string, requirement: required, description: f}]\n\
        retry: {max_retries: 1, checks: [{type: shell, command: 'test -f {{ file }}'}]}\n";
    let recipe = recipe::parse_recipe(text).unwrap();
    assert!(fill(&recipe, &[("file", "src/main.rs")]).is_ok());
    let hostile =
        ["a; rm -rf ~", "$(id)", "`id`", "a && b", "a|b", "a\nb", "-rf", "../x", "a b", "'", "\"", "a>b", "*"];
    for value in hostile {
        let error = fill(&recipe, &[("file", value)]).unwrap_err().to_string();
        assert!(error.starts_with("retry.checks[0].command: the value of file cannot stand in a command"), "{error}");
    }
}

/// A recipe with one field changed.
fn with(field: &str, value: Value) -> Result<Recipe, Flaw> {
    let mut recipe = json!({"title": "t", "description": "d", "prompt": "p"});
    recipe[field] = value;
    recipe::recipe_from_value(recipe)
}

#[test]
fn what_is_wrong_is_said_with_its_field() {
    let parameter = |more: Value| {
        let mut parameter = json!({"key": "a", "input_type": "string", "requirement": "required", "description": "x"});
        parameter.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([parameter])
    };
    let shell = |command: &str| json!({"max_retries": 1, "checks": [{"type": "shell", "command": command}]});
    let sub = |path: &str| json!([{"name": "s", "path": path}]);
    let cases = [
        ("title", json!(""), "title: it is missing"),
        ("prompt", json!(" "), "prompt: there is neither a prompt nor instructions"),
        ("prompt", json!("{{ who }}"), "prompt: there is no parameter of this name: who"),
        ("prompt", json!("{% include 'x' %}"), "prompt: it cannot be filled in"),
        ("parameters", json!([{"key": "a"}]), "parameters[0]: missing field `input_type`"),
        ("parameters", parameter(json!({"input_type": "colour"})), "parameters[0]: unknown variant `colour`"),
        ("parameters", parameter(json!({"key": "a b"})), "parameters[0].key: it is not a name"),
        ("parameters", parameter(json!({"requirement": "optional"})), "parameters[0].default: an optional"),
        ("parameters", parameter(json!({"input_type": "select"})), "parameters[0].options: a parameter of type select"),
        ("parameters", parameter(json!({"input_type": "file", "default": "/etc/passwd"})), "parameters[0].default: a"),
        ("extensions", json!([{"type": "stdio", "name": "x"}]), "extensions[0].cmd: an extension of type stdio"),
        ("extensions", json!([{"type": "inline_python", "name": "x"}]), "extensions[0].type: extensions of this type"),
        ("response", json!({"json_schema": {"type": 7}}), "response.json_schema: it is no JSON schema"),
        ("settings", json!({"temperature": 7}), "settings.temperature: it must be from 0 to 2"),
        ("retry", shell(" "), "retry.checks[0].command: it is empty"),
        ("retry", json!({"max_retries": 1, "checks": []}), "retry.checks: there must be 1 to 20"),
        ("retry", json!({"max_retries": 4_000, "checks": []}), "retry.max_retries: more than 20"),
        ("sub_recipes", sub("../x.yaml"), "sub_recipes[0].path: it leads out of the recipe's folder"),
        ("sub_recipes", sub("/etc/x.yaml"), "sub_recipes[0].path: it leads out"),
        ("sub_recipes", sub("{{ recipe_dir }}/../x.yaml"), "sub_recipes[0].path: it leads out"),
        ("activities", json!(vec!["x"; 101]), "activities: it has more than 100 items: 101"),
        ("instructions", json!("be\u{e0041} nice"), "instructions: it holds characters that no reader sees"),
        ("extensions", json!([{"name": "a\u{202e}b"}]), "extensions[0].name: it holds characters"),
        ("author", json!({"contact\u{200b}": "x"}), "author.contact⟨U+200B⟩: it holds characters"),
        ("prompt", json!("x".repeat(300 << 10)), "recipe: it is larger than 262144 bytes"),
    ];
    for (field, value, expected) in cases {
        let error = with(field, value).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// A recipe with this prompt, which may name a city and days.
fn of_city(prompt: &str) -> Result<Recipe, Flaw> {
    let parameter = |key: &str| json!({"key": key, "input_type": "string", "requirement": "required", "description": "x", "default": "3"});
    let parameters = json!([parameter("city"), parameter("days")]);
    recipe::recipe_from_value(json!({"title": "t", "description": "d", "prompt": prompt, "parameters": parameters}))
}

/// Few steps make much of little: each of these would take gigabytes, most of them without writing a letter.
#[test]
fn what_grows_is_refused() {
    let double = |times: usize| "{% set a = a ~ a %}".repeat(times);
    let nested = |times: usize| format!("{{% if city{} %}}{{% endif %}}", "|tojson".repeat(times));
    let chain = format!("{{{{ {} }}}}", vec!["city"; 40].join(" ~ "));
    let bombs = [
        "{{ 'x' * 100000000 }}".to_owned(),
        "{% if 'x' * 100000000 %}{% endif %}".to_owned(),
        "{% if [city] * 100000000 %}{% endif %}".to_owned(),
        format!("{{% set a = city %}}{}", double(40)),
        format!("{{% with a = city ~ city %}}{{{{ a }}}}{{% endwith %}}{}", double(1)),
        "{% set a %}{% for x in city %}xxxx{% endfor %}{% endset %}".to_owned(),
        "{% for x in [city] recursive %}{{ loop([x ~ x]) }}{% endfor %}".to_owned(),
        "{% filter indent(1000000000) %}x{% endfilter %}".to_owned(),
        "{{ city | indent(1000000000, first=true) }}".to_owned(),
        "{{ 'aaaa' | replace('a', city * 2) }}".to_owned(),
        "{% if city | list | map('replace', '', city) | list %}{% endif %}".to_owned(),
        "{% if city | slice(1000000000) %}{% endif %}".to_owned(),
        "{% if city | format(city) %}{% endif %}".to_owned(),
        nested(40),
        chain,
    ];
    let long = "\"".repeat(200 << 10);
    for bomb in bombs {
        let filled = of_city(&bomb).and_then(|recipe| fill(&recipe, &[("city", &long)]));
        let error = filled.expect_err(&bomb).to_string();
        assert!(error.starts_with("prompt: ") && !error.contains("no parameter"), "{error}");
    }
    // Quadratic in the value, which is 200 KiB.
    for bomb in ["{{ city | replace('', city) }}", "{{ city | list | join(city) }}"] {
        let filled = of_city(bomb).and_then(|recipe| fill(&recipe, &[("city", &long)]));
        let error = filled.expect_err(bomb).to_string();
        assert!(error.contains("it becomes larger than 524288 bytes"), "{error}");
    }
    let written = of_city("{% for a in 'aaaa' %}{{ city }}{% endfor %}").unwrap();
    let error = fill(&written, &[("city", &long)]).unwrap_err().to_string();
    assert!(error.contains("it is larger than 524288 bytes"), "{error}");
}

/// What recipes do use.
#[test]
fn templates_that_do_not_grow_are_filled_in() {
    let cases = [
        ("{{ city | upper }} {{ city ~ '!' }} {{ 'x' if city else 'y' }}", "BERN Bern! x"),
        ("{% set place = city %}{{ place | default('nowhere') | replace('e', 'E') }}", "BErn"),
        (
            "{% for l in ['a', city] %}{{ loop.index }}{{ l }}{% if not loop.last %}, {% endif %}{% endfor %}",
            "1a, 2Bern",
        ),
        ("{{ ['a', 'b'] | join('-') }} {{ 'a\nb' | indent(2) }} {{ city | tojson }}", "a-b a\n  b \"Bern\""),
        ("{% if city in ['Bern'] and city is string and days | int > 2 %}yes{% endif %}", "yes"),
        ("{% raw %}{{ 'x' * 10 }}{% endraw %}{# {{ 'x' * 10 }} #}", "{{ 'x' * 10 }}"),
    ];
    for (template, expected) in cases {
        let recipe = of_city(template).unwrap();
        let prompt = fill(&recipe, &[("city", "Bern")]).unwrap().prompt;
        assert_eq!(prompt.as_deref(), Some(expected), "{template}");
    }
}

#[test]
fn what_never_ends_is_refused() {
    let mut bomb = "title: t\ndescription: d\nprompt: p\nactivities: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (next, last) in ('b'..='j').zip('a'..) {
        bomb.push_str(&format!("{next}: &{next} [{}]\n", vec![format!("*{last}"); 9].join(",")));
    }
    assert!(recipe::parse_recipe(&bomb).is_err());
    assert!(recipe::parse_recipe(&format!("title: {}", "[".repeat(100_000))).is_err());
    let deep = json!(
        "{% for a in 'aaaaaaaaaa' %}{% for b in 'aaaaaaaaaa' %}{% for c in 'aaaaaaaaaa' %}\
        {% for d in 'aaaaaaaaaa' %}{% for e in 'aaaaaaaaaa' %}x{% endfor %}{% endfor %}{% endfor %}{% endfor %}{% endfor %}"
    );
    let recipe = with("prompt", deep).unwrap();
    let error = fill(&recipe, &[]).unwrap_err().to_string();
    assert!(error.starts_with("prompt: it cannot be filled in"), "{error}");
    assert!(with("prompt", json!("{{ range(100000000) }}")).is_err());
    assert!(recipe::parse_recipe("- a\n- b\n").unwrap_err().to_string().starts_with("recipe: it is not a mapping"));
}
