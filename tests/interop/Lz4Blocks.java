// Compresses ("c" and the block size) or decompresses ("d") a stream with lz4-java, as the Java N5 library does.
import java.io.InputStream;
import java.io.OutputStream;
import net.jpountz.lz4.LZ4BlockInputStream;
import net.jpountz.lz4.LZ4BlockOutputStream;

public class Lz4Blocks {
    public static void main(String[] args) throws Exception {
        boolean compresses = args[0].equals("c");
        InputStream in = compresses ? System.in : new LZ4BlockInputStream(System.in);
        try (OutputStream out = compresses ? new LZ4BlockOutputStream(System.out, Integer.parseInt(args[1])) : System.out) {
            in.transferTo(out);
        }
    }
}
