package io.weft.examples.bench.survive;

import io.weft.examples.side.SideOptions;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;

/** Shuffles whose executors die. */
public enum SurviveSide {
  /** Spark's sort shuffle without an external shuffle service. */
  SPARK("Spark"),
  /** Weft with its defaults. */
  WEFT("Weft"),
  /** Weft; a living executor adopts the outputs of the dead one. */
  ADOPT("Weft, adoption"),
  /** Weft; outputs are copied to a local folder. */
  SURVIVE("Weft, copies");

  private final String label;

  SurviveSide(String label) {
    this.label = label;
  }

  /** The name in tables. */
  public String label() {
    return label;
  }

  /**
   * The cluster of this side.
   *
   * @param copies folder for copies of map outputs
   */
  SideOptions options(Path copies) {
    SideOptions side =
        switch (this) {
          case SPARK -> SideOptions.spark(Map.of());
          case WEFT -> SideOptions.weft("auto", Map.of());
          case ADOPT -> SideOptions.weft("auto", Map.of("spark.weft.adopt.enabled", "true"));
          case SURVIVE ->
              SideOptions.weft("auto", Map.of("spark.weft.survive.path", copies.toString()));
        };
    return side.renamed(name().toLowerCase(Locale.ROOT));
  }
}
