package io.weft.spark.transfers;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** The executors that are gone, in the order in which the driver heard of it. Thread-safe. */
public final class DepartedExecutors {
  private final List<Departure> departures = new ArrayList<>();

  /** Adds one; false if it was known. */
  synchronized boolean add(Departure departure) {
    if (reason(departure.executorId()).isPresent()) {
      return false;
    }
    departures.add(departure);
    return true;
  }

  /** Why an executor is gone; empty while it is there. */
  synchronized Optional<String> reason(String executorId) {
    return departures.stream()
        .filter(departure -> departure.executorId().equals(executorId))
        .map(departure -> "executor " + executorId + " is gone: " + departure.reason())
        .findFirst();
  }

  /**
   * Those that an executor has not heard of.
   *
   * @param known how many it has heard of
   */
  public synchronized List<Departure> since(int known) {
    return new ArrayList<>(
        departures.subList(Math.min(Math.max(known, 0), departures.size()), departures.size()));
  }
}
