package io.weft.training;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.io.IOException;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;
import java.util.ArrayList;
import java.util.List;

/**
 * The optimiser Adam (Kingma and Ba, ICLR 2015) with bias correction and decoupled weight decay.
 *
 * <p>All arithmetic is float32, in one pass over a parameter. A tile of a few KB of parameter,
 * gradient and moments is widened, stepped and rounded back, so moments in bfloat16 need no float32
 * copy. The update itself uses the moments before rounding. A bfloat16 second moment cannot follow
 * changes smaller than 1/256 of itself: with a beta2 of 0.999 it lags once gradients settle.
 * Training usually tolerates that; float32 moments avoid it.
 *
 * <p>Ranks that start from the same parameters and step with the same averaged gradients stay
 * equal, bit for bit. Not thread-safe.
 */
public final class Adam implements AutoCloseable {
  private static final long MAGIC = 0x31_4d41_4441_5457L;
  private static final int VERSION = 1;

  private final List<ParameterSpec> parameters;
  private final AdamOptions options;
  private final FloatTile value = new FloatTile();
  private final FloatTile gradient = new FloatTile();
  private final FloatTile first = new FloatTile();
  private final FloatTile second = new FloatTile();
  private Moments moments;
  private double learningRate;
  private long steps;

  /** Creates an optimiser before its first step. */
  public Adam(List<ParameterSpec> parameters, AdamOptions options) {
    this.parameters = List.copyOf(parameters);
    this.options = options;
    this.moments = new Moments(this.parameters, options.moments());
    this.learningRate = options.learningRate();
  }

  /** The number of steps so far, including those before a restored state. */
  public long steps() {
    return steps;
  }

  /** The learning rate of the next step; more than 0. */
  public double learningRate() {
    return learningRate;
  }

  /** Sets the learning rate from the next step on, for schedules. It is not part of the state. */
  public void learningRate(double rate) {
    this.learningRate = options.withLearningRate(rate).learningRate();
  }

  /**
   * Runs one step of all parameters.
   *
   * @param values float32 or bfloat16, in the order of registration; changed in place
   * @param gradients as many elements each, of either type; only read
   * @throws IllegalArgumentException if one does not fit; nothing is changed then
   */
  public void step(List<TypedBuffer> values, List<TypedBuffer> gradients) {
    if (values.size() != parameters.size() || gradients.size() != parameters.size()) {
      throw new IllegalArgumentException(
          values.size()
              + " values and "
              + gradients.size()
              + " gradients for "
              + parameters.size()
              + " parameters");
    }
    for (int i = 0; i < parameters.size(); i++) {
      parameters.get(i).requireFit("value", values.get(i));
      parameters.get(i).requireFit("gradient", gradients.get(i));
    }
    steps++;
    Coefficients now = coefficients();
    for (int i = 0; i < parameters.size(); i++) {
      step(i, values.get(i), gradients.get(i), now);
    }
  }

  /** The factors of one step, computed in float64 and rounded once. */
  private record Coefficients(
      float beta1, float beta2, float rate, float correction2, float epsilon, float keep) {}

  private Coefficients coefficients() {
    double correction1 = 1 - Math.pow(options.beta1(), (double) steps);
    double correction2 = 1 - Math.pow(options.beta2(), (double) steps);
    return new Coefficients(
        (float) options.beta1(),
        (float) options.beta2(),
        (float) (learningRate / correction1),
        (float) (1 / correction2),
        (float) options.epsilon(),
        (float) (1 - learningRate * options.weightDecay()));
  }

  private void step(int index, TypedBuffer values, TypedBuffer gradients, Coefficients now) {
    TypedBuffer firsts = moments.first(index);
    TypedBuffer seconds = moments.second(index);
    DataType kept = moments.type();
    long count = values.count();
    for (long done = 0; done < count; done += FloatTile.SIZE) {
      int n = (int) Math.min(FloatTile.SIZE, count - done);
      long momentOffset = done * kept.bytes();
      long valueOffset = done * values.type().bytes();
      value.load(values.type(), values.address() + valueOffset, n);
      gradient.load(gradients.type(), gradients.address() + done * gradients.type().bytes(), n);
      first.load(kept, firsts.address() + momentOffset, n);
      second.load(kept, seconds.address() + momentOffset, n);
      update(value.values, gradient.values, first.values, second.values, n, now);
      value.store(values.type(), values.address() + valueOffset, n);
      first.store(kept, firsts.address() + momentOffset, n);
      second.store(kept, seconds.address() + momentOffset, n);
    }
  }

  private static void update(float[] p, float[] g, float[] m, float[] v, int n, Coefficients now) {
    float beta1 = now.beta1();
    float beta2 = now.beta2();
    float rate = now.rate();
    float correction2 = now.correction2();
    float epsilon = now.epsilon();
    float keep = now.keep();
    for (int i = 0; i < n; i++) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      p[i] = keep * p[i] - rate * m[i] / ((float) Math.sqrt(v[i] * correction2) + epsilon);
    }
  }

  /**
   * Writes steps and moments, after a version and before a CRC-32C. The bytes depend only on the
   * state. The channel stays open.
   */
  public void stateTo(WritableByteChannel channel) throws IOException {
    StateOutput out = new StateOutput(channel, MAGIC, VERSION);
    out.number(steps);
    moments.writeTo(out);
    out.finish();
  }

  /**
   * Reads what {@link #stateTo} wrote for the same parameters and type of moments, and not a byte
   * more. The constants and the learning rate of this optimiser do not change.
   *
   * @throws StateException if it is damaged, of other parameters or of a newer version; then this
   *     optimiser is unchanged
   */
  public void stateFrom(ReadableByteChannel channel) throws IOException {
    readState(channel).run();
  }

  /** Reads and checks a state. Nothing changes until the returned action runs. */
  Runnable readState(ReadableByteChannel channel) throws IOException {
    StateInput in = new StateInput(channel, "a state of Adam", MAGIC, VERSION);
    Moments read = new Moments(parameters, options.moments());
    try {
      long readSteps = in.number();
      read.readFrom(in);
      in.finish();
      return () -> {
        moments.close();
        moments = read;
        steps = readSteps;
      };
    } catch (IOException | RuntimeException e) {
      read.close();
      throw e;
    }
  }

  /** Frees the moments. */
  @Override
  public void close() {
    moments.close();
  }

  /** The running means of the gradients and of their squares for each parameter. */
  static final class Moments implements AutoCloseable {
    private final List<ParameterSpec> parameters;
    private final DataType type;
    private final List<Tensor> first = new ArrayList<>();
    private final List<Tensor> second = new ArrayList<>();

    /** Creates moments of zero. */
    Moments(List<ParameterSpec> parameters, DataType type) {
      this.parameters = parameters;
      this.type = type;
      for (ParameterSpec parameter : parameters) {
        first.add(Tensor.allocate(TensorType.of(type, parameter.count())));
        second.add(Tensor.allocate(TensorType.of(type, parameter.count())));
      }
    }

    DataType type() {
      return type;
    }

    TypedBuffer first(int parameter) {
      return first.get(parameter).buffer();
    }

    TypedBuffer second(int parameter) {
      return second.get(parameter).buffer();
    }

    void writeTo(StateOutput out) throws IOException {
      out.text(type.toString());
      out.number(parameters.size());
      for (int i = 0; i < parameters.size(); i++) {
        out.text(parameters.get(i).name());
        out.number(parameters.get(i).count());
        out.memory(first(i));
        out.memory(second(i));
      }
    }

    /** Reads what {@link #writeTo} wrote for the same parameters. */
    void readFrom(StateInput in) throws IOException {
      in.expect("type of the moments", type.toString());
      in.expect("number of parameters", parameters.size());
      for (int i = 0; i < parameters.size(); i++) {
        in.expect("name of parameter " + i, parameters.get(i).name());
        in.expect("size of " + parameters.get(i).name(), parameters.get(i).count());
        in.memory(first(i));
        in.memory(second(i));
      }
    }

    @Override
    public void close() {
      first.forEach(Tensor::close);
      second.forEach(Tensor::close);
    }
  }
}
