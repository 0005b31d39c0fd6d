package io.weft.shuffle.fetch;

import static io.weft.shuffle.peer.ExchangeCounter.BUSY_NANOS;
import static io.weft.shuffle.peer.ExchangeCounter.CHECKSUM_FAILURES;
import static io.weft.shuffle.peer.ExchangeCounter.REMOTE_BLOCKS;
import static io.weft.shuffle.peer.ExchangeCounter.REMOTE_BYTES;
import static io.weft.shuffle.peer.ExchangeCounter.REQUESTS_FAILED;
import static io.weft.shuffle.peer.ExchangeCounter.REQUESTS_POSTPONED;
import static io.weft.shuffle.peer.ExchangeCounter.STREAMS;
import static io.weft.shuffle.peer.ExchangeCounter.WAITS;
import static io.weft.shuffle.peer.ExchangeCounter.WAIT_NANOS;

import io.weft.shuffle.fetch.BlockFetchException.ReadPath;
import io.weft.shuffle.fetch.BlockReaders.FetchContext;
import io.weft.shuffle.fetch.ChunkReader.CurrentChunk;
import io.weft.shuffle.fetch.InFlightWindow.PostponedRequest;
import io.weft.shuffle.fetch.PeerQueue.DeliveryState;
import io.weft.shuffle.fetch.PeerQueue.FetchPlan;
import io.weft.shuffle.net.BlocksOpened;
import io.weft.shuffle.net.PeerConnection;
import io.weft.shuffle.net.WireException;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.ShuffleEvents.Wait;
import io.weft.shuffle.peer.Traffic.ReaderTraffic;
import io.weft.shuffle.peer.TrafficReport.Figure;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Fetches the blocks of a reader over the network. All work runs on the reader's thread: when it
 * asks for a chunk, it also sends requests, handles answers and frees memory. Event loops only fill
 * reserved memory and signal events.
 */
final class BlockFetcher implements AutoCloseable {
  private final FetchContext context;
  private final FetchListener listener;
  private final ReadTrace trace;
  private final ReaderTraffic traffic;
  private final boolean retained;
  private final InFlightWindow window;
  private final LinkedBlockingQueue<DeliveryState> events = new LinkedBlockingQueue<>();
  private final Map<PeerAddress, PeerQueue> byPeer = new HashMap<>();
  private final List<PeerQueue> queues = new ArrayList<>();
  private final ArrayDeque<PostponedRequest> postponed = new ArrayDeque<>();

  /** The last refusal of a busy peer, for retries that have no answer yet. */
  private final Map<DeliveryState, String> refusals = new HashMap<>();

  private boolean sendable = true;

  /** Whether the reader can make progress only by a postponed request. */
  private boolean starving;

  private int deliverFrom;
  private int sendFrom;

  /** The last two delivered chunks, whose memory the reader may still use. */
  private DeliveryState current;

  private DeliveryState previous;
  private BlockRequest lastRequest;
  private int lastPartition;

  /** The shuffle of the last request, which the reader's waits count for. */
  private int shuffleId;

  /**
   * Starts without blocks.
   *
   * @param retained whether delivered chunks stay readable until {@link #close()}
   */
  BlockFetcher(FetchContext context, FetchListener listener, ReadTrace trace, boolean retained) {
    this.context = context;
    this.listener = listener;
    this.trace = trace;
    this.retained = retained;
    this.traffic = new ReaderTraffic(context.counters().traffic());
    this.window = new InFlightWindow(context, trace, retained, events::add);
  }

  void add(BlockRequest request, PeerAddress peer) {
    PeerQueue queue = byPeer.get(peer);
    if (queue == null) {
      queue = new PeerQueue(peer);
      byPeer.put(peer, queue);
      queues.add(queue);
    }
    queue.add(request);
    shuffleId = request.key().shuffleId();
    sendable = true;
  }

  /** Handles events and sends requests, without waiting. */
  void progress() throws BlockFetchException {
    DeliveryState event = events.poll();
    while (event != null) {
      handle(event);
      event = events.poll();
    }
    resumePostponed();
    if (sendable) {
      sendable = false;
      sendReady();
    }
  }

  /** Retries postponed requests after the delay that their peer asked for. */
  private void resumePostponed() {
    long now = System.nanoTime();
    for (int i = postponed.size(); i > 0 && postponed.peek().left(now) <= 0; i--) {
      PostponedRequest due = postponed.remove();
      DeliveryState again = window.resume(due, starving);
      if (again == null) {
        postponed.add(new PostponedRequest(due.refused(), due.second(), now, due.delayNanos()));
      } else {
        context.counters().add(BUSY_NANOS, now - due.refusedAt());
        refusals.put(again, due.refused().request().failure().getMessage());
        due.refused().markBroken();
        due.refused().request().plan().queue().replace(due.refused(), again);
        starving = false;
      }
    }
  }

  private void sendReady() throws BlockFetchException {
    for (int i = 0; i < queues.size(); i++) {
      PeerQueue queue = queues.get(sendFrom);
      if (queue.isReady() && window.send(queue) == InFlightWindow.Sent.NO_ROOM) {
        return;
      }
      sendFrom = (sendFrom + 1) % queues.size();
    }
  }

  /** Releases the chunk before the last one. */
  void releasePrevious() {
    if (retained) {
      return;
    }
    if (previous != null && previous.release()) {
      release(previous);
    }
    previous = current;
    current = null;
  }

  private void release(DeliveryState used) {
    window.release(used);
    sendable = true;
  }

  /** Moves to the next chunk and waits for it if necessary. Returns false if there is none. */
  boolean next(CurrentChunk chunk) throws BlockFetchException {
    progress();
    while (!deliver(chunk)) {
      if (queues.stream().allMatch(queue -> queue.isDone() && queue.incoming().isEmpty())) {
        return false;
      }
      if (!sendable) {
        await();
      }
      progress();
    }
    return true;
  }

  private boolean deliver(CurrentChunk chunk) {
    for (int i = 0; i < queues.size(); i++) {
      PeerQueue queue = queues.get(deliverFrom);
      if (deliver(queue, chunk)) {
        return true;
      }
      deliverFrom = (deliverFrom + 1) % queues.size();
    }
    return false;
  }

  private boolean deliver(PeerQueue queue, CurrentChunk chunk) {
    ArrayDeque<DeliveryState> incoming = queue.incoming();
    while (!incoming.isEmpty()) {
      DeliveryState first = incoming.peek();
      if (first.next(chunk)) {
        first.use();
        current = first;
        count(chunk, queue.peer());
        return true;
      }
      if (!first.isDelivered()) {
        return false;
      }
      incoming.remove();
      // A request larger than the window can be sent only when no other is outstanding.
      sendable = true;
      if (first.isUnused()) {
        release(first);
      } else if (retained) {
        window.keep(first);
      }
    }
    return false;
  }

  private void count(CurrentChunk chunk, PeerAddress peer) {
    boolean newOutput = !chunk.request.equals(lastRequest);
    boolean newBlock = newOutput || chunk.partition != lastPartition;
    lastRequest = chunk.request;
    lastPartition = chunk.partition;
    listener.remote(newOutput ? 1 : 0, newBlock ? 1 : 0, chunk.length);
    context.counters().add(REMOTE_BLOCKS, newBlock ? 1 : 0);
    context.counters().add(REMOTE_BYTES, chunk.length);
    int shuffle = chunk.request.key().shuffleId();
    context.compression().arrived(shuffle, chunk.address, chunk.length);
    traffic.read(shuffle, Figure.NETWORK, peer.executorId(), peer.host(), chunk.length);
  }

  private void handle(DeliveryState event) throws BlockFetchException {
    event.clearSignal();
    FetchRequest request = event.request();
    if (event.takeAnnouncement()) {
      announce(event, request.answer());
    }
    if (request.failure() == null || event.isBroken()) {
      return;
    }
    if (request.retryAfterMillis() > 0) {
      postpone(event);
    } else {
      context.counters().increment(REQUESTS_FAILED);
      context.counters().add(CHECKSUM_FAILURES, request.isDamaged() ? 1 : 0);
      recover(event);
    }
  }

  /** Postpones a refused request and frees its memory. Fails after the timeout. */
  private void postpone(DeliveryState refused) throws BlockFetchException {
    if (postponed.stream().anyMatch(known -> known.refused() == refused)) {
      return;
    }
    FetchRequest request = refused.request();
    refusals.remove(refused);
    if (request.stalledNanos() >= context.limits().timeout().toNanos()) {
      throw busyForTooLong(refused, request.failure().getMessage());
    }
    context.counters().increment(REQUESTS_POSTPONED);
    postponed.add(PostponedRequest.now(refused, window.isSecondAttempt(refused)));
    release(refused);
  }

  private BlockFetchException busyForTooLong(DeliveryState refused, String reason) {
    context.counters().increment(REQUESTS_FAILED);
    return failure(
        refused,
        new TimeoutException(
            "refused until the timeout of "
                + context.limits().timeout().toMillis()
                + " ms ("
                + timeoutName()
                + "): "
                + reason));
  }

  private void announce(DeliveryState event, BlocksOpened answer) throws BlockFetchException {
    refusals.remove(event);
    FetchPlan plan = event.request().plan();
    if (!plan.repeated()) {
      plan.queue().answered(answer);
    } else if (answer.chunks() != plan.maxChunks()) {
      throw failure(event, new WireException("the retry of a broken answer has other chunks"));
    }
    if (answer.chunks() > 0) {
      context.counters().increment(STREAMS);
    }
    window.trim(event);
    sendable = true;
  }

  /** Retries a lost or damaged request once. Throws any other failure. */
  private void recover(DeliveryState failed) throws BlockFetchException {
    FetchRequest request = failed.request();
    if (!request.isRetryable() || window.isSecondAttempt(failed)) {
      context.peers().forget(request.plan().queue().peer());
      throw failure(failed, request.failure());
    }
    DeliveryState replacement = window.retry(failed);
    failed.markBroken();
    request.plan().queue().replace(failed, replacement);
  }

  private void await() throws BlockFetchException {
    long started = System.nanoTime();
    long timeout = context.limits().timeout().toNanos();
    // Empty if the last one has just ended. Then its event is about to arrive.
    Optional<DeliveryState> slowest = window.slowest();
    Wait traced = trace.waits(shuffleId, slowest);
    long since = slowest.map(state -> state.request().lastProgress()).orElse(started);
    long retryIn = postponed.stream().mapToLong(p -> p.left(started)).min().orElse(Long.MAX_VALUE);
    try {
      long left = Math.max(0, Math.min(retryIn, since + timeout - started));
      DeliveryState event = events.poll(left, TimeUnit.NANOSECONDS);
      if (event != null) {
        handle(event);
      } else if (slowest.isEmpty() && postponed.isEmpty()) {
        throw new IllegalStateException("no request is outstanding, but chunks are missing");
      } else if (slowest.isEmpty()) {
        // All arrived chunks wait behind a postponed request and keep their memory.
        starving = true;
      } else if (slowest.isPresent()
          && System.nanoTime() - slowest.get().request().lastProgress() >= timeout) {
        throw timeout(slowest.get());
      }
    } catch (InterruptedException e) {
      throw context.failures().interrupted("blocks " + ReadPath.REMOTE.phrase());
    } finally {
      long waited = System.nanoTime() - started;
      listener.waited(waited);
      context.counters().increment(WAITS);
      context.counters().add(WAIT_NANOS, waited);
      traffic.waited(shuffleId, waited);
      if (traced != null) {
        traced.commit();
      }
    }
  }

  private BlockFetchException timeout(DeliveryState silent) {
    String refusal = refusals.get(silent);
    if (refusal != null) {
      // The peer has answered every request so far; the last retry is recent.
      return busyForTooLong(silent, refusal);
    }
    PeerConnection connection = silent.request().connection();
    boolean overtaken = silent.request().isOvertaken();
    if (connection != null && !overtaken) {
      // Later requests on the connection are stuck as well. They can be retried on another one.
      connection.abort();
    }
    context.counters().increment(REQUESTS_FAILED);
    context.peers().forget(silent.request().plan().queue().peer());
    String stage =
        connection == null
            ? "no connection"
            : silent.request().answer() == null ? "no answer" : "no further bytes";
    return failure(
        silent,
        new TimeoutException(
            stage
                + " within "
                + context.limits().timeout().toMillis()
                + " ms ("
                + timeoutName()
                + ")"
                + (overtaken ? ", while answers to much later requests arrive" : "")));
  }

  private String timeoutName() {
    return context.arena().names().of("fetchTimeout");
  }

  private BlockFetchException failure(DeliveryState failed, Throwable cause) {
    return context
        .failures()
        .failure(
            failed.failedRequest(),
            failed.failedPartition(),
            failed.request().plan().queue().peer(),
            ReadPath.REMOTE,
            cause);
  }

  /** Frees all memory. Bytes that still arrive are dropped. */
  @Override
  public void close() {
    window.close();
    traffic.flush();
  }
}
