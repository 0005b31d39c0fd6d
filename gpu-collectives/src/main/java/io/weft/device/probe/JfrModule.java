package io.weft.device.probe;

/**
 * Whether this Java has the module {@code jdk.jfr}, which a reduced runtime may lack. Classes of
 * events can be used only if it is there.
 */
public final class JfrModule {
  /** Whether the module is there. */
  public static final boolean PRESENT = ModuleLayer.boot().findModule("jdk.jfr").isPresent();

  private JfrModule() {}
}
