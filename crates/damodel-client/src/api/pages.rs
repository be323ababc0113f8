//! Reading complete lists, independent of the service's page size.

use std::{collections::BTreeMap, sync::atomic::Ordering, time::Duration};

use serde_json::value::RawValue;

use super::{
    beside::beside,
    client::Client,
    context::Context,
    endpoint::{Endpoint, Request},
    envelope::Answer,
    error::Error,
    lenient::{Elements, Lenient as _, members},
    listing::Listing,
    records::{Record, read},
    retry::Retry,
};

/// The requested page size if the service does not return the whole list.
const PAGE_SIZE: usize = 100;

/// How often a list that changed between its pages is requested.
const TRIES: u32 = 3;

/// The pause before the second request of such a list; each further pause is longer by as much.
const PAUSE: Duration = Duration::from_millis(500);

/// Reads a list in one array (service API, Public image list and Specification list).
pub(super) async fn whole<T: Record>(
    client: &Client,
    context: &Context,
    request: &Request,
) -> Result<Listing<T>, Error> {
    let answer = client.read(context, request, Retry::AsConfigured).await?;
    let Page { total, mut records, unread } = Page::<T>::read(answer, request).await?;
    records.sort_by_cached_key(T::key);
    note_skipped(request, unread.len());
    let seen = records.len() + unread.len();
    let is_reached = total.is_none_or(|total| usize::try_from(total) == Ok(seen));
    let complete = unread.is_empty() && is_reached;
    Ok(Listing { complete, total, is_reached, unread, changed: false, records })
}

/// Reads a paged list to its end (service API, Response envelope, paged object).
///
/// The whole list is requested first (`page_size` 0). If the service returns less, or the list is too long for one
/// answer, pages of 100 are requested, then pages of the size that it returns, until the total was seen or a page adds
/// no record.
pub(super) async fn paged<T: Record>(
    client: &Client,
    context: &Context,
    request: &Request,
    retry: Retry,
) -> Result<Listing<T>, Error> {
    let list = List { client, context, request, retry };
    let mut tries = 1;
    loop {
        let mut pages = Pages::<T> { records: BTreeMap::new(), unread: Vec::new(), total: None, moved: false };
        pages.collect(&list).await?;
        note_skipped(request, pages.unread.len());
        if !pages.moved || tries == TRIES || context.sleep(PAUSE * tries).await.is_err() {
            return Ok(pages.into_listing());
        }
        tries += 1;
    }
}

/// The list that is read, and with what.
struct List<'a> {
    client: &'a Client,
    context: &'a Context,
    request: &'a Request,
    retry: Retry,
}

impl List<'_> {
    async fn page(&self, number: usize, size: usize, retry: Retry) -> Result<Answer, Error> {
        let request = self.request.clone().query("page", number).query("page_size", size);
        self.client.read(self.context, &request, retry).await
    }
}

struct Pages<T: Record> {
    records: BTreeMap<T::Key, T>,
    unread: Vec<Option<String>>,
    total: Option<i64>,
    moved: bool,
}

impl<T: Record> Pages<T> {
    async fn collect(&mut self, list: &List<'_>) -> Result<(), Error> {
        let mut size = match self.ask_for_all(list).await? {
            Some(size) if self.is_over(size) => return Ok(()),
            Some(size) => size,
            None => 0,
        };
        let mut number = 2;
        if size < PAGE_SIZE {
            // The service treats 0 as its default or as none: it may return more if more is requested.
            self.unread.clear();
            size = self.add(list.page(1, PAGE_SIZE, list.retry).await?, list.request).await?;
        }
        while !self.is_over(size) {
            let (records, unread) = (self.records.len(), self.unread.len());
            self.add(list.page(number, size, list.retry).await?, list.request).await?;
            if self.records.len() == records && (self.total.is_none() || self.unread.len() == unread) {
                // Unreadable records of a page that repeats another one are not counted again.
                self.unread.truncate(unread);
                break;
            }
            number += 1;
        }
        Ok(())
    }

    /// Asks for the whole list at once; `None` if it is too long for one answer. That is not tried again then.
    async fn ask_for_all(&mut self, list: &List<'_>) -> Result<Option<usize>, Error> {
        if list.client.lists_in_pages().load(Ordering::Relaxed) {
            return Ok(None);
        }
        let retry = if list.retry == Retry::Never { list.retry } else { Retry::UnlessTooMuch };
        match list.page(1, 0, retry).await {
            Ok(answer) => self.add(answer, list.request).await.map(Some),
            Err(error) if error.is_too_much() => {
                tracing::info!(endpoint = %list.request.endpoint, %error, "lists are read in pages from now on");
                list.client.lists_in_pages().store(true, Ordering::Relaxed);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds a page; returns its number of records.
    async fn add(&mut self, answer: Answer, request: &Request) -> Result<usize, Error> {
        let page = Page::<T>::read(answer, request).await?;
        self.moved |= self.total.is_some() && self.total != page.total;
        self.total = page.total;
        let count = page.records.len() + page.unread.len();
        self.records.extend(page.records.into_iter().map(|record| (record.key(), record)));
        self.unread.extend(page.unread);
        Ok(count)
    }

    fn seen(&self) -> i64 {
        i64::try_from(self.records.len() + self.unread.len()).unwrap_or(i64::MAX)
    }

    /// Whether the list is finished after a page of `size` records.
    fn is_over(&self, size: usize) -> bool {
        match self.total {
            Some(total) => self.seen() >= total,
            None => size == 0,
        }
    }

    fn into_listing(self) -> Listing<T> {
        let is_reached = !self.moved && self.total == Some(self.seen());
        Listing {
            complete: is_reached && self.unread.is_empty(),
            total: self.total,
            is_reached,
            unread: self.unread,
            changed: self.moved,
            records: self.records.into_values().collect(),
        }
    }
}

/// The records of one answer, from a paged object or an array, and the names of those that cannot be read.
struct Page<T> {
    total: Option<i64>,
    records: Vec<T>,
    unread: Vec<Option<String>>,
}

impl<T: Record> Page<T> {
    async fn read(answer: Answer, request: &Request) -> Result<Self, Error> {
        let endpoint = request.endpoint;
        beside(answer.result.len(), move || Self::parse(&answer, endpoint)).await?
    }

    /// Reads an array, null, an object with `data`, or an object whose total is 0 (services write an empty list in many
    /// ways). Any other shape is an error: an unknown shape must not pass for an empty list.
    fn parse(answer: &Answer, endpoint: Endpoint) -> Result<Self, Error> {
        let result = str::from_utf8(&answer.result).unwrap_or_default();
        let mut total = None;
        let data = serde_json::from_str(result).ok().or_else(|| {
            let fields = members(result, "data total").unwrap_or_default();
            total = fields.get("total").and_then(|total| i64::read(&read(total.get().as_bytes())?));
            fields.get("data").and_then(|data| serde_json::from_str(data.get()).ok())
        });
        match data {
            Some(Elements(data)) => {
                let mut page = Self { total, records: Vec::new(), unread: Vec::new() };
                for record in data {
                    match read::<T>(record.get().as_bytes()) {
                        Some(record) => page.records.push(record),
                        None => page.unread.push(name_of(record)),
                    }
                }
                Ok(page)
            }
            None if total == Some(0) => Ok(Self { total, records: Vec::new(), unread: Vec::new() }),
            None => Err(Error::undecodable(endpoint, "the result is not a list", answer.ids.clone())),
        }
    }
}

/// The name of an unreadable record.
fn name_of(record: &RawValue) -> Option<String> {
    let fields: serde_json::Map<String, serde_json::Value> = read(record.get().as_bytes())?;
    ["instance_alias", "name", "image_name"].iter().find_map(|name| fields.get(*name)?.as_str().map(str::to_owned))
}

fn note_skipped(request: &Request, skipped: usize) {
    if skipped > 0 {
        tracing::warn!(endpoint = %request.endpoint, skipped, "records without an id were left out of a list");
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::transport::Outgoing;
    use crate::api::{
        endpoint::Endpoint,
        records::Instance,
        testing::{Reply, context, ok, query, serve},
    };

    fn instances(count: usize) -> Vec<Value> {
        (0..count).map(|number| json!({"instance_uid": format!("ins-{number:04}")})).rev().collect()
    }

    fn number(request: &Outgoing, name: &str) -> usize {
        query(request, name).unwrap().parse().unwrap()
    }

    /// A service that returns at most `cap` records a page, and treats 0 as `zero`.
    fn cut(all: &[Value], request: &Outgoing, cap: usize, zero: usize) -> Reply {
        let size = match number(request, "page_size") {
            0 => zero,
            size => size,
        }
        .min(cap);
        let start = number(request, "page").saturating_sub(1) * size;
        let data: Vec<_> = all.iter().skip(start).take(size).collect();
        ok(&json!({"total": all.len(), "page": 1, "page_size": size, "data": data}))
    }

    async fn list(client: &Client) -> Listing<Instance> {
        let request = Request::new(Endpoint::InstanceList);
        paged(client, &context(60), &request, Retry::AsConfigured).await.unwrap()
    }

    #[rstest]
    #[case::no_cap(300, usize::MAX, usize::MAX, 1)]
    #[case::empty(0, usize::MAX, usize::MAX, 1)]
    #[case::cap_of_100(300, 100, 100, 3)]
    #[case::cap_of_100_uneven(301, 100, 100, 4)]
    #[case::cap_of_250(300, 250, 250, 2)]
    #[case::zero_is_ten(300, usize::MAX, 10, 4)]
    #[case::zero_is_none(300, usize::MAX, 0, 4)]
    #[case::cap_of_50(120, 50, 50, 4)]
    #[tokio::test(start_paused = true)]
    async fn every_page_size_leads_to_the_total(
        #[case] count: usize,
        #[case] cap: usize,
        #[case] zero: usize,
        #[case] requests: usize,
    ) {
        let all = instances(count);
        let (client, ledger) = serve(move |request| {
            let reply = cut(&all, &request, cap, zero);
            async move { reply }
        });
        let listing = list(&client).await;
        assert!(listing.complete);
        assert_eq!(listing.records.len(), count);
        assert!(listing.records.is_sorted_by_key(|instance| instance.uid.clone()));
        assert_eq!(ledger.all().len(), requests);
    }

    #[rstest]
    #[case::short_of_total(json!({"total": 3, "data": [{"instance_uid": "a"}]}), 1, 0, Some("its total is 3"))]
    #[case::no_total(json!({"data": [{"instance_uid": "a"}]}), 1, 0, None)]
    #[case::bare_array(json!([{"instance_uid": "a"}]), 1, 0, None)]
    #[case::odd_record(
        json!({"total": 2, "data": [{"instance_uid": "a"}, {"status": "Running"}]}), 1, 1, Some("1 of its 2 records")
    )]
    #[case::odd_record_without_total(json!([{"status": "Running"}]), 0, 1, Some("1 of its 1 records"))]
    #[case::more_than_total(json!({"total": 1, "data": [{"instance_uid": "a"}, {"instance_uid": "b"}]}), 2, 0, None)]
    #[case::null(json!(null), 0, 0, None)]
    #[tokio::test(start_paused = true)]
    async fn a_list_that_proves_nothing_is_not_complete(
        #[case] result: Value,
        #[case] records: usize,
        #[case] skipped: usize,
        #[case] gap: Option<&str>,
    ) {
        let (client, _) = serve(move |_| {
            let reply = ok(&result);
            async move { reply }
        });
        let listing = list(&client).await;
        assert!(!listing.complete);
        assert_eq!((listing.records.len(), listing.unread.len()), (records, skipped));
        let said = listing.gap();
        assert_eq!(said.is_some(), gap.is_some(), "{said:?}");
        assert!(said.unwrap_or_default().contains(gap.unwrap_or_default()));
    }

    #[rstest]
    #[case(json!({"total": 0, "data": null}))]
    #[case(json!({"total": "0", "data": []}))]
    #[tokio::test(start_paused = true)]
    async fn an_empty_list_is_complete(#[case] result: Value) {
        let (client, _) = serve(move |_| {
            let reply = ok(&result);
            async move { reply }
        });
        assert!(list(&client).await.complete);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_changes_between_pages_is_asked_for_again() {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let (client, ledger) = serve(move |request| {
            let before = asked.fetch_add(1, Ordering::SeqCst);
            let all = instances(if before == 0 { 150 } else { 149 });
            let reply = cut(&all, &request, 100, 100);
            async move { reply }
        });
        let listing = list(&client).await;
        assert!(listing.complete);
        assert_eq!(listing.records.len(), 149);
        assert_eq!(ledger.all().len(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_always_changes_is_given_as_incomplete() {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let (client, _) = serve(move |request| {
            let before = asked.fetch_add(1, Ordering::SeqCst);
            let reply = cut(&instances(150 + before), &request, 100, 100);
            async move { reply }
        });
        let listing = list(&client).await;
        assert!(!listing.complete);
        assert!(listing.gap().unwrap().contains("changed"));
    }
}
