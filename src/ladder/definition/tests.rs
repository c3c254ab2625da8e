use super::gone;
use crate::ladder::testing::world;
use crate::protocol::target::Target;
use crate::refusal::Hidden;

/// With `disclose: hidden` it must be told as a URI that does not exist is, which is by its own name.
#[test]
fn of_several_uris_the_one_that_is_gone_is_told() {
    let world = world(&[]);
    let capability = |text: &str| {
        let all = world.server().prices.capabilities();
        all.iter().find(|capability| &*capability.text == text).expect("a capability")
    };
    let target = Target::Resources(vec!["cases://index", "cases://case/3"]);
    for (text, uri) in [("resource:index", "cases://index"), ("resource:case", "cases://case/3")] {
        let refusal = gone(world.server(), &target, capability(text));
        assert!(matches!(&refusal.hidden, Some(Hidden::Resource(told)) if told == uri), "{text}: {refusal:?}");
    }
}
