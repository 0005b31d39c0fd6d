package io.weft.spark.runtime;

import io.weft.shuffle.AdoptionAgreement;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.config.AdoptionSettings;
import io.weft.spark.runtime.Messages.Adopt;
import io.weft.spark.runtime.Messages.Adoption;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.storage.BlockManagerId;

/** Asks the driver to move the places of adopted map outputs to this executor. Stateless. */
final class DriverAgreement implements AdoptionAgreement {
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(2);
  private static final long LAST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

  private final PluginContext driver;
  private final Duration timeout;

  DriverAgreement(PluginContext driver) {
    this.driver = driver;
    this.timeout = AdoptionSettings.TIMEOUT.get(driver.conf());
  }

  @Override
  public Set<BlockKey> agree(String executorId, String incarnation, Collection<BlockKey> outputs)
      throws IOException, InterruptedException {
    BlockManagerId own = SparkEnv.get().blockManager().blockManagerId();
    Adopt question =
        new Adopt(
            driver.executorID(),
            own.host(),
            own.port(),
            own.topologyInfo().getOrElse(() -> null),
            executorId,
            incarnation,
            byShuffle(outputs));
    long deadline = System.nanoTime() + timeout.toNanos();
    long pause = FIRST_PAUSE_NANOS;
    Adoption answer = ask(question);
    while (answer.isPending()) {
      if (System.nanoTime() - deadline >= 0) {
        throw new IOException(
            "the driver did not agree within %d ms (%s)"
                .formatted(timeout.toMillis(), AdoptionSettings.TIMEOUT));
      }
      LockSupport.parkNanos(this, pause);
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      pause = Math.min(2 * pause, LAST_PAUSE_NANOS);
      answer = ask(question);
    }
    if (answer.refusal() != null) {
      throw new IOException(answer.refusal());
    }
    return keys(answer.outputs());
  }

  private Adoption ask(Adopt question) throws IOException, InterruptedException {
    try {
      return (Adoption) MessageCodec.decode(driver.ask(MessageCodec.encode(question)));
    } catch (InterruptedException e) {
      throw e;
    } catch (Exception e) {
      throw new IOException("the driver did not answer: " + e, e);
    }
  }

  private static Map<Integer, long[]> byShuffle(Collection<BlockKey> outputs) {
    return new HashMap<>(
        outputs.stream()
            .collect(
                Collectors.groupingBy(
                    BlockKey::shuffleId,
                    Collectors.collectingAndThen(
                        Collectors.toList(),
                        keys -> keys.stream().mapToLong(BlockKey::mapId).toArray()))));
  }

  private static Set<BlockKey> keys(Map<Integer, long[]> outputs) {
    Set<BlockKey> keys = new HashSet<>();
    outputs.forEach(
        (shuffle, maps) ->
            Arrays.stream(maps).forEach(mapId -> keys.add(new BlockKey(shuffle, mapId))));
    return keys;
  }
}
