//! Creates of cloud disks, whose answers may have no id.

use futures_util::future::join_all;

use super::*;
use crate::api::{CloudDiskSpecFilter, CreateCloudDisk, Sighting};

fn request() -> CreateCloudDisk {
    CreateCloudDisk {
        name: Some("data".to_owned()),
        mount_path: Some("/data".to_owned()),
        ..CreateCloudDisk::new(100, 2)
    }
}

async fn create_one(client: &Client, journal: &Journal, seconds: u64) -> Result<Accepted<CloudDisk>, Error> {
    permitted(client, request().into(), journal, CreateOptions::default(), &context(seconds)).await
}

/// A service that creates disks, and shows them or not.
struct Disks {
    lists_show: bool,
    searches_show: bool,
    made: Mutex<Vec<String>>,
    answer: fn() -> Reply,
}

impl Disks {
    fn new(lists_show: bool, answer: fn() -> Reply) -> Self {
        Self { lists_show, searches_show: false, made: Mutex::default(), answer }
    }

    fn serve(self) -> (Client, Ledger) {
        serve(move |request| {
            let reply = self.reply(&request);
            async move { reply }
        })
    }

    fn reply(&self, request: &Outgoing) -> Reply {
        if request.endpoint == Endpoint::CloudDiskCreate {
            let body: Value = serde_json::from_slice(request.body.as_deref().unwrap()).unwrap();
            self.made.lock().unwrap().push(body["disk_name"].as_str().unwrap().to_owned());
            return (self.answer)();
        }
        let shown = match query(request, "name_or_uid") {
            Some(_) => self.searches_show,
            None => self.lists_show,
        };
        let made = self.made.lock().unwrap();
        let records: Vec<Value> = (21..)
            .zip(&*made)
            .filter(|_| shown)
            .map(|(id, name)| json!({"id": id, "uid": format!("disk-{id}"), "name": name, "status": 1}))
            .collect();
        page(&records)
    }
}

fn null() -> Reply {
    ok(&json!(null))
}

fn creates(ledger: &Ledger) -> usize {
    ledger.of(Endpoint::CloudDiskCreate).len()
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_names_nothing_is_settled_by_the_marker() {
    let (_folder, journal) = journal();
    let (client, ledger) = Disks::new(true, null).serve();
    let accepted = create_one(&client, &journal, 60).await.unwrap();
    assert_eq!((accepted.made.id, accepted.made.uid.as_deref()), (21, Some("disk-21")));
    assert_eq!(accepted.origin, Origin::Found);
    assert_eq!(accepted.rename_to.as_deref(), Some("data"));
    assert!(is_marked(&accepted.sent_name, ObjectKind::CloudDisk, "data", journal.scope()));
    assert_eq!(accepted.ids.request_id.as_deref(), Some("req-1"));
    let body = json!({"size_gb": 100, "spec_id": 2, "disk_name": accepted.sent_name, "mount_path": "/data",
        "purchase_duration": 1});
    assert_eq!(ledger.of(Endpoint::CloudDiskCreate)[0].body(), body);
    assert_eq!(ledger.of(Endpoint::CloudDiskList).len(), 2, "leftovers, and the marker");
    assert_eq!(phases(&journal), [CreatePhase::Accepted]);
    accepted.entry.finish().unwrap();
    let journal = next(&journal);
    let base_url = "http://127.0.0.1:1";
    assert!(!journal.seen(ObjectKind::CloudDisk, "21", Some("disk-99"), base_url).unwrap(), "another service's 21");
    assert!(journal.seen(ObjectKind::CloudDisk, "21", Some("disk-21"), base_url).unwrap());
    assert!(phases(&journal).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_acknowledged_disk_that_never_shows_stays_in_the_journal_and_is_made_anew_late() {
    let (_folder, journal) = journal();
    let (client, ledger) = Disks::new(false, null).serve();
    let error = create_one(&client, &journal, 30).await.unwrap_err();
    assert!(matches!(&error, Error::Unsettled(unsettled) if unsettled.cause.is_none()), "{error}");
    let record = journal.list().unwrap().entries.remove(0).record;
    assert_eq!((record.phase, record.acknowledged), (CreatePhase::Sent, true));
    assert_eq!(record.request_id.as_deref(), Some("req-1"));
    let start = Instant::now();
    create_one(&client, &next(&journal), 1800).await.unwrap_err();
    assert!(start.elapsed() >= Duration::from_secs(590), "{:?}", start.elapsed());
    assert_eq!(creates(&ledger), 2);
    let sent: Vec<_> = ledger.of(Endpoint::CloudDiskCreate).iter().map(|asked| asked.body()).collect();
    assert_eq!(sent[0], sent[1]);
}

#[rstest]
#[case::while_it_is_sent(4)]
#[case::while_it_is_looked_for(6)]
#[tokio::test(start_paused = true)]
async fn a_cancel_still_learns_the_id_of_what_was_taken_on(#[case] cancelled_after: u64) {
    let (_folder, journal) = journal();
    let service = Arc::new(Disks::new(true, null));
    let (client, _) = serve(move |request| {
        let service = Arc::clone(&service);
        async move {
            let seconds = if request.endpoint == Endpoint::CloudDiskCreate { 5 } else { 3 };
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            service.reply(&request)
        }
    });
    let cancel = CancellationToken::new();
    let context = Context::within(Duration::from_secs(600), &cancel);
    let stop = async {
        tokio::time::sleep(Duration::from_secs(cancelled_after)).await;
        cancel.cancel();
    };
    let creating = permitted(&client, request().into(), &journal, CreateOptions::default(), &context);
    let (accepted, ()) = tokio::join!(creating, stop);
    assert_eq!(accepted.unwrap().made.id, 21);
    assert_eq!(phases(&journal), [CreatePhase::Accepted]);
}

#[tokio::test(start_paused = true)]
async fn a_search_has_the_last_word_before_a_second_create() {
    let (_folder, journal) = journal();
    let service = Disks { searches_show: true, ..Disks::new(false, lost) };
    let (client, ledger) = service.serve();
    create_one(&client, &journal, 5).await.unwrap_err();
    let accepted = create_one(&client, &next(&journal), 1800).await.unwrap();
    assert_eq!(accepted.made.id, 21);
    assert_eq!(creates(&ledger), 1);
    assert_eq!(ledger.all().iter().filter(|asked| query(&asked.request, "name_or_uid").is_some()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn fifty_disks_that_show_late_share_their_looks() {
    let start = Instant::now();
    let made = Arc::new(Mutex::new(Vec::<String>::new()));
    let (client, ledger) = serve(move |request| {
        let made = Arc::clone(&made);
        async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let mut made = made.lock().unwrap();
            if let Some(body) = &request.body {
                let body: Value = serde_json::from_slice(body).unwrap();
                made.push(body["disk_name"].as_str().unwrap().to_owned());
                return null();
            }
            let shown = if start.elapsed() > Duration::from_secs(20) { made.len() } else { 0 };
            let records: Vec<_> =
                (1..).zip(&made[..shown]).map(|(id, name)| json!({"id": id, "name": name, "status": 2})).collect();
            page(&records)
        }
    });
    let (_folder, journal) = journal();
    let (disks, context) = (client.cloud_disks(), context(600));
    let creates = (0..50).map(|number| {
        let request = CreateCloudDisk { name: Some(format!("d{number}")), ..CreateCloudDisk::new(20, 1) };
        let (client, disks, journal, context) = (client.clone(), disks.clone(), journal.clone(), context.clone());
        async move {
            let options = CreateOptions::default();
            let made = permitted(&client, request.into(), &journal, options, &context).await.unwrap().made;
            let ready = |seen: &Sighting<CloudDisk>| seen.record().is_some_and(|disk| disk.status == Some(2));
            disks.wait(&made.id, &context, ready).await.unwrap();
            made.id
        }
    });
    let mut ids = join_all(creates).await;
    ids.sort_unstable();
    assert_eq!(ids, (1..=50).collect::<Vec<_>>());
    let (creates, lists) = (ledger.of(Endpoint::CloudDiskCreate).len(), ledger.of(Endpoint::CloudDiskList).len());
    assert_eq!(creates, 50);
    assert!(lists <= 60, "{lists}");
    assert!(start.elapsed() < Duration::from_secs(26), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn disks_that_are_created_together_share_one_look_and_one_list_of_specifications() {
    let (client, ledger) = Disks::new(true, null).serve();
    let (_folder, journal) = journal();
    let context = context(60);
    let creates = (0..10).map(|number| {
        let (client, journal, context) = (client.clone(), journal.clone(), context.clone());
        async move {
            tokio::time::sleep(Duration::from_millis(10 * number)).await;
            client.cloud_disks().specs(&CloudDiskSpecFilter::default(), &context).await.unwrap();
            let request = CreateCloudDisk { name: Some(format!("d{number}")), ..CreateCloudDisk::new(20, 1) };
            permitted(&client, request.into(), &journal, CreateOptions::default(), &context).await.unwrap()
        }
    });
    assert_eq!(join_all(creates).await.len(), 10);
    let asked = [Endpoint::CloudDiskSpecList, Endpoint::CloudDiskCreate, Endpoint::CloudDiskList]
        .map(|endpoint| ledger.of(endpoint).len());
    assert_eq!(asked, [1, 10, 2]);
}
