package io.weft.examples.train.djl;

import ai.djl.engine.Engine;
import io.weft.examples.train.ModelProvider;
import io.weft.examples.train.ModelShape;
import io.weft.examples.train.TrainingModel;

/** Creates models on DJL's PyTorch engine, without network access. */
public final class DjlModels implements ModelProvider {
  static final String ENGINE = "PyTorch";

  private static final long serialVersionUID = 1L;

  /** For the service loader. */
  public DjlModels() {}

  @Override
  public String name() {
    Engine engine = engine();
    return "DJL " + Engine.getDjlVersion() + ", " + ENGINE + " " + engine.getVersion();
  }

  /** Unpacks PyTorch, 450 MB, to {@code ~/.djl.ai} or {@code DJL_CACHE_DIR}. */
  @Override
  public void prepare() {
    engine();
  }

  @Override
  public TrainingModel open(ModelShape shape, long seed) {
    engine();
    return new DjlClassifier(shape, seed);
  }

  /**
   * Returns the PyTorch engine of the class path. There are as many ranks as cores, so each rank
   * has one thread. The settings also keep DJL from asking the network whether it runs in a cloud.
   */
  private static Engine engine() {
    setUnlessSet("ai.djl.offline", "true");
    setUnlessSet("OPT_OUT_TRACKING", "true");
    setUnlessSet("ai.djl.pytorch.num_threads", "1");
    setUnlessSet("ai.djl.pytorch.num_interop_threads", "1");
    return Engine.getEngine(ENGINE);
  }

  private static void setUnlessSet(String property, String value) {
    if (System.getProperty(property) == null) {
      System.setProperty(property, value);
    }
  }
}
