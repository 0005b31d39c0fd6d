package io.weft.spark.config;

import io.weft.memory.SettingNames;
import java.util.Map;

/** The settings behind the options of the lower modules, so that messages name settings. */
public final class OptionNames {
  private static final SettingNames SETTINGS =
      new SettingNames(
          Map.of(
              "memoryBytes", WeftSettings.MEMORY_SIZE.key(),
              "diskBytes", WeftSettings.SPILL_SIZE.key(),
              "privateMemory", WeftSettings.SPILL_PRIVATE_MEMORY.key(),
              "marginBytes", WeftSettings.MEMORY_MARGIN.key(),
              "diskFolders", "spark.local.dir",
              "fetchTimeout", WeftSettings.FETCH_TIMEOUT.key(),
              "maxServedBytes", WeftSettings.SERVE_MAX_BYTES_IN_FLIGHT.key(),
              "maxServedBytesPerPeer", WeftSettings.SERVE_MAX_BYTES_IN_FLIGHT_PER_PEER.key(),
              "mode", WeftSettings.TRANSPORT.key(),
              "unencryptedNccl", WeftSettings.NCCL_ALLOW_UNENCRYPTED.key()));

  private OptionNames() {}

  /** Returns the key of the setting for each option that messages name. */
  public static SettingNames settings() {
    return SETTINGS;
  }
}
