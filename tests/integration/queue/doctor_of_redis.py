"""The doctor's checks of Redis and the broker, by name."""

from harbor_refresh.doctor.examination import CHECKS, examine

CHECKS_OF_REDIS = [one.name for one in CHECKS if one.name.startswith(("redis.", "broker."))]


def sound_checks_of_redis() -> list[str]:
    chosen = [one for one in CHECKS if one.name in CHECKS_OF_REDIS]
    return [one.check.name for one in examine(chosen) if one.verdict == "sound"]
