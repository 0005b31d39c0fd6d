package io.weft.memory;

import java.util.Map;

/**
 * The names that messages use for options. A user does not set the options of these modules
 * directly, so the caller maps each option to the setting that the user knows. Immutable.
 *
 * @param byOption the setting's name by the option's name
 */
public record SettingNames(Map<String, String> byOption) {
  /** Options under their own names. */
  public static final SettingNames OWN = new SettingNames(Map.of());

  public SettingNames {
    byOption = Map.copyOf(byOption);
  }

  /** Returns the setting's name, or the option's own name if there is no setting. */
  public String of(String option) {
    return byOption.getOrDefault(option, option);
  }
}
