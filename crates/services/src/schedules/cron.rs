//! When a schedule is due: cron's five or six fields, in a named time zone.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use gander_domain::Timestamp;
use jiff::tz::TimeZone;

/// Why a cron pattern or time zone is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleTimeError {
    /// The pattern.
    #[error("not a cron pattern of five or six fields, {0}")]
    Pattern(String),
    /// It never comes.
    #[error("this time never occurs: {0}")]
    Never(String),
    /// The time zone.
    #[error("no such time zone (such as Europe/Berlin or UTC): {0}")]
    Zone(String),
}

/// The first time after this one.
pub(crate) fn next_cron_occurrence(pattern: &str, zone: &str, from: Timestamp) -> Result<Timestamp, ScheduleTimeError> {
    let zone = TimeZone::get(zone).map_err(|_| ScheduleTimeError::Zone(zone.to_owned()))?;
    let from = jiff::Timestamp::from_microsecond(from.as_micros()).unwrap_or(jiff::Timestamp::MIN).to_zoned(zone);
    let next = parse_cron(pattern)?
        .find_next_occurrence(&from, false)
        .map_err(|_| ScheduleTimeError::Never(pattern.to_owned()))?;
    Ok(Timestamp::from_micros(next.timestamp().as_microsecond()))
}

/// The full name of a time zone.
pub fn canonical_time_zone(name: &str) -> Result<String, ScheduleTimeError> {
    match TimeZone::get(name) {
        Ok(zone) => Ok(zone.iana_name().unwrap_or(name).to_owned()),
        Err(_) => Err(ScheduleTimeError::Zone(name.to_owned())),
    }
}

/// The machine's own. Finding it may mean to look through all that there are.
pub fn machine_time_zone() -> String {
    TimeZone::system().iana_name().filter(|name| *name != "Etc/Unknown").unwrap_or("UTC").to_owned()
}

fn parse_cron(pattern: &str) -> Result<Cron, ScheduleTimeError> {
    let wrong = |reason: &str| ScheduleTimeError::Pattern(format!("{reason}: {pattern}"));
    if pattern.len() > 200 || !pattern.is_ascii() {
        return Err(ScheduleTimeError::Pattern("it is too long, or not plain text".to_owned()));
    }
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    parser.parse(pattern).map_err(|error| wrong(&error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn next(pattern: &str, zone: &str, from: &str) -> String {
        let from: jiff::Timestamp = from.parse().unwrap();
        let at = next_cron_occurrence(pattern, zone, Timestamp::from_micros(from.as_microsecond())).unwrap();
        jiff::Timestamp::from_microsecond(at.as_micros()).unwrap().to_string()
    }

    #[test]
    fn a_pattern_means_the_wall_clock_of_its_zone() {
        let cases = [
            ("0 9 * * 1-5", "UTC", "2026-01-02T09:00:00Z", "2026-01-05T09:00:00Z"),
            ("0 9 * * *", "Europe/Berlin", "2026-01-31T00:00:00Z", "2026-01-31T08:00:00Z"),
            ("0 9 * * *", "Europe/Berlin", "2026-07-31T00:00:00Z", "2026-07-31T07:00:00Z"),
            ("*/15 * * * *", "UTC", "2026-01-31T00:00:01Z", "2026-01-31T00:15:00Z"),
            ("30 0 12 * * *", "UTC", "2026-01-31T00:00:00Z", "2026-01-31T12:00:30Z"),
            ("0 0 29 2 *", "UTC", "2026-01-31T00:00:00Z", "2028-02-29T00:00:00Z"),
        ];
        for (pattern, zone, from, expected) in cases {
            assert_eq!(next(pattern, zone, from), expected, "{pattern} {zone}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let now = Timestamp::from_micros(1_800_000_000_000_000);
        let long = "*".repeat(300);
        for pattern in ["", "* * * *", "61 * * * *", "* * * * * * *", "every day", "0 0 31 2 *", long.as_str()] {
            assert!(next_cron_occurrence(pattern, "UTC", now).is_err(), "{pattern}");
        }
        assert_eq!(
            next_cron_occurrence("* * * * *", "Mars/Olympus", now),
            Err(ScheduleTimeError::Zone("Mars/Olympus".to_owned()))
        );
        assert_eq!(canonical_time_zone("Europe/Berlin").unwrap(), "Europe/Berlin");
        assert!(canonical_time_zone("../../etc/passwd").is_err());
        assert!(canonical_time_zone(&machine_time_zone()).is_ok());
    }
}
