package io.weft.spark.runtime;

import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.CopyStore;
import io.weft.spark.config.SurviveSettings;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The folder of an application's copies, {@code <path>/weft-<user>/<application>}, with a file for
 * each map output, {@code <shuffle id>/<map id>}. The driver creates it, renews the mark in it and
 * deletes it. Only its user can read it. Thread-safe.
 */
public final class CopyFolder implements CopyStore {
  private static final Logger LOG = LoggerFactory.getLogger(CopyFolder.class);
  private static final String MARK = "alive";
  private static final FsPermission OWNER_ONLY = new FsPermission((short) 0700);

  private final FileSystem files;
  private final Path folder;

  private CopyFolder(FileSystem files, Path folder) {
    this.files = files;
    this.folder = folder;
  }

  /**
   * Opens the folder of an application, which need not exist.
   *
   * @param application name that is unique among all applications
   * @throws IOException if its file system cannot be reached
   */
  public static CopyFolder open(SparkConf conf, String application) throws IOException {
    Path path = new Path(SurviveSettings.path(conf).orElseThrow());
    Configuration hadoop = SparkHadoopUtil.get().newConfiguration(conf);
    FileSystem files = connect(path, hadoop);
    return new CopyFolder(files, new Path(ofUser(files, path), application));
  }

  /** Opens a connection of its own, because closing a shared one would close it for others. */
  private static FileSystem connect(Path path, Configuration hadoop) throws IOException {
    FileSystem files = FileSystem.newInstance(path.toUri(), hadoop);
    if (files instanceof LocalFileSystem local) {
      // Copies have checksums of their own.
      local.setWriteChecksum(false);
      local.setVerifyChecksum(false);
    }
    return files;
  }

  private static Path ofUser(FileSystem files, Path path) throws IOException {
    String user = UserGroupInformation.getCurrentUser().getShortUserName();
    return files.makeQualified(new Path(path, "weft-" + user));
  }

  private Path file(BlockKey key) {
    return new Path(ofShuffle(key.shuffleId()), Long.toString(key.mapId()));
  }

  private Path ofShuffle(int shuffle) {
    return new Path(folder, Integer.toString(shuffle));
  }

  @Override
  public OutputStream create(BlockKey key) throws IOException {
    return create(file(key), false);
  }

  /** Hadoop starts a process for each local file, to set its permissions. */
  private OutputStream create(Path file, boolean overwrite) throws IOException {
    if (files instanceof LocalFileSystem) {
      java.nio.file.Path local = Paths.get(file.toUri().getPath());
      if (overwrite) {
        return Files.newOutputStream(local);
      }
      Files.createDirectories(local.getParent());
      return Files.newOutputStream(local, java.nio.file.StandardOpenOption.CREATE_NEW);
    }
    try {
      return files.create(file, overwrite);
    } catch (org.apache.hadoop.fs.FileAlreadyExistsException e) {
      throw (IOException) new FileAlreadyExistsException(file.toString()).initCause(e);
    }
  }

  @Override
  public CopyInput open(BlockKey key) throws IOException {
    FSDataInputStream input = files.open(file(key));
    return new CopyInput() {
      @Override
      public void readFully(long position, byte[] into, int offset, int length) throws IOException {
        input.readFully(position, into, offset, length);
      }

      @Override
      public void close() throws IOException {
        input.close();
      }
    };
  }

  @Override
  public void delete(BlockKey key) throws IOException {
    files.delete(file(key), false);
  }

  /** Creates the folder and its mark. */
  public void create() throws IOException {
    FileSystem.mkdirs(files, folder, OWNER_ONLY);
    mark();
  }

  /** Renews the mark, which keeps the folder from sweeps. */
  public void mark() throws IOException {
    create(new Path(folder, MARK), true).close();
  }

  /** Deletes all copies of a shuffle. */
  public void deleteShuffle(int shuffle) throws IOException {
    files.delete(ofShuffle(shuffle), true);
  }

  /** Deletes the folder. */
  public void deleteAll() throws IOException {
    files.delete(folder, true);
  }

  /**
   * Deletes the folders of applications of this user whose mark was not renewed for some time.
   *
   * @param path of the copies of all applications
   * @return the deleted folders
   */
  public static List<String> sweep(String path, Configuration hadoop, Duration age)
      throws IOException {
    List<String> deleted = new ArrayList<>();
    Path root = new Path(path);
    try (FileSystem files = connect(root, hadoop)) {
      Path ofUser = ofUser(files, root);
      if (!files.exists(ofUser)) {
        return deleted;
      }
      long oldest = System.currentTimeMillis() - age.toMillis();
      for (FileStatus application : files.listStatus(ofUser)) {
        if (lastMarked(files, application) < oldest && files.delete(application.getPath(), true)) {
          deleted.add(application.getPath().toString());
        }
      }
    }
    return deleted;
  }

  /** Some file systems have no times of folders, so the mark counts where there is one. */
  private static long lastMarked(FileSystem files, FileStatus application) throws IOException {
    Path mark = new Path(application.getPath(), MARK);
    return files.exists(mark)
        ? files.getFileStatus(mark).getModificationTime()
        : application.getModificationTime();
  }

  @Override
  public void close() {
    try {
      files.close();
    } catch (IOException e) {
      LOG.debug("The connection to {} was not closed", folder, e);
    }
  }

  @Override
  public String toString() {
    return folder.toString();
  }
}
