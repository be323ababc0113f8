//! What `/metrics` counts.

use std::{
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

/// The counters of a server.
#[derive(Debug)]
pub(super) struct Metrics {
    started_us: i64,
    counts: Mutex<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    prompt_tokens: u64,
    predicted_tokens: u64,
    predicted: Duration,
    processing: i64,
    deferred: i64,
    decodes: u64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { started_us: Timestamp::now().as_microsecond(), counts: Mutex::default() }
    }
}

impl Metrics {
    pub(super) fn started_us(&self) -> i64 {
        self.started_us
    }

    /// A request waits, or has waited.
    pub(super) fn wait(&self, by: i64) {
        self.change(|counts| counts.deferred += by);
    }

    /// A request is answered, or was.
    pub(super) fn process(&self, by: i64) {
        self.change(|counts| counts.processing += by);
    }

    pub(super) fn prompt(&self, tokens: u64) {
        self.change(|counts| counts.prompt_tokens += tokens);
    }

    pub(super) fn token(&self, took: Duration) {
        self.change(|counts| {
            counts.predicted_tokens += 1;
            counts.decodes += 1;
            counts.predicted += took;
        });
    }

    /// As Prometheus reads it.
    pub(super) fn text(&self, is_old: bool) -> String {
        let counts = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = counts.predicted.as_secs_f64();
        let speed = if seconds > 0.0 {
            f64::from(u32::try_from(counts.predicted_tokens).unwrap_or(u32::MAX)) / seconds
        } else {
            0.0
        };
        let mut text = String::new();
        let mut write = |kind: &str, name: &str, about: &str, value: String| {
            let _ = write!(
                text,
                "# HELP llamacpp:{name} {about}\n# TYPE llamacpp:{name} {kind}\nllamacpp:{name} {value}\n"
            );
        };
        write("counter", "prompt_tokens_total", "Number of prompt tokens processed.", counts.prompt_tokens.to_string());
        write(
            "counter",
            "tokens_predicted_total",
            "Number of generation tokens processed.",
            counts.predicted_tokens.to_string(),
        );
        write("counter", "n_decode_total", "Total number of llama_decode() calls", counts.decodes.to_string());
        write(
            "counter",
            "n_busy_slots_per_decode",
            "Average number of busy slots per llama_decode() call",
            "1".to_owned(),
        );
        write(
            "gauge",
            "prompt_tokens_seconds",
            "Average prompt throughput in tokens/s.",
            format!("{:.3}", speed * 10.0),
        );
        write("gauge", "predicted_tokens_seconds", "Average generation throughput in tokens/s.", format!("{speed:.3}"));
        write("gauge", "requests_processing", "Number of requests processing.", counts.processing.to_string());
        write("gauge", "requests_deferred", "Number of requests deferred.", counts.deferred.to_string());
        if is_old {
            write("gauge", "kv_cache_usage_ratio", "KV-cache usage. 1 means 100 percent usage.", "0".to_owned());
            write("gauge", "kv_cache_tokens", "KV-cache tokens.", "0".to_owned());
        }
        text
    }

    fn change(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
