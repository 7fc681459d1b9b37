//! What somebody without a mouse can do.

use divvy_playground::Setup;
use divvy_testbed::Window;

use crate::served::Served;
use crate::visit::Visit;

#[tokio::test(flavor = "multi_thread")]
async fn events_are_gone_through_and_picked() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    let start = "document.querySelector('#events .fold button')";
    page.until(&format!(
        "{start}.textContent.includes('256 partitions started')"
    ))
    .await;
    page.run(&format!("{start}.click()")).await;
    page.until(&format!("{start}.ariaExpanded === 'true'"))
        .await;
    page.until("document.querySelectorAll('#events .picks button').length >= 256")
        .await;
    page.run(&format!("{start}.focus()")).await;
    page.press("ArrowDown").await;
    page.until("document.activeElement.matches('#events .picks button') && document.activeElement.tabIndex === 0")
        .await;
    // Of all rows one is where Tab comes to.
    let reached = "document.querySelectorAll('#events button[tabindex=\"0\"]').length";
    assert_eq!(page.run(reached).await, 1);
    page.run("document.activeElement.click()").await;
    page.until("document.activeElement.id === 'pane'").await;
    page.press("Escape").await;
    page.until("document.activeElement.matches('#events .picks button')")
        .await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn focus_goes_to_what_is_explained_and_back() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.press("p").await;
    page.press("Home").await;
    page.press("Enter").await;
    page.until("document.activeElement.id === 'pane'").await;
    page.press("Escape").await;
    page.until("document.activeElement.id === 'cells-focus'")
        .await;
    page.press("c").await;
    page.run("document.activeElement.click()").await;
    page.until("document.activeElement.id === 'pane'").await;
    // From a field of the pane as well.
    page.run("document.querySelector('#pane input').focus()")
        .await;
    page.press("Escape").await;
    page.until("document.activeElement.matches('#cards .main')")
        .await;
    page.has_no_complaints();
}
