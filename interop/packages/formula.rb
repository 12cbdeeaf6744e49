# Evaluates a Homebrew formula as Homebrew on Linux would, and installs a tarball with its steps.
#
#   formula.rb FORMULA intel|arm TARBALL
#
# Only the words that our formula has are defined: a misspelt one is an error.

require "digest"
require "tmpdir"

FORMULA, CPU, TARBALL = ARGV

# A folder that `install` copies into, as Homebrew's Pathname does.
class Target
  attr_reader :installed

  def initialize
    @installed = []
  end

  def install(*sources)
    sources.flatten.each do |source|
      from, name = source.is_a?(Hash) ? source.first : [source, File.basename(source)]
      abort "not in the tarball: #{from}" unless File.file?(from) && File.size(from).positive?
      @installed << name
    end
  end
end

# The class methods are the formula's description.
class Formula
  FIELDS = %i[desc homepage version license url sha256 depends_on].freeze
  FIELDS.each { |field| define_singleton_method(field) { |value = nil| value ? said[field] = value : said[field] } }

  def self.said = @said ||= {}
  def self.on_linux = yield
  def self.on_intel = (yield if CPU == "intel")
  def self.on_arm = (yield if CPU == "arm")
  def self.test = nil

  %i[bin man1 bash_completion zsh_completion fish_completion].each do |folder|
    define_method(folder) { folders[folder] ||= Target.new }
  end

  def folders = @folders ||= {}
end

load FORMULA
said = Gander.said
missing = Formula::FIELDS - said.keys
abort "not said: #{missing}" unless missing.empty?
abort "description: at most 80 characters, no article, no full stop" if said[:desc].length > 80 || said[:desc] =~ /\A(An?|The) |\.\z/
abort "another archive: #{said[:url]}" unless said[:url].end_with?("/#{File.basename(TARBALL)}")
abort "another checksum than #{TARBALL} has" unless said[:sha256] == Digest::SHA256.file(TARBALL).hexdigest

Dir.mktmpdir do |folder|
  system("tar", "xzf", TARBALL, "-C", folder, "--strip-components=1") || abort("cannot read #{TARBALL}")
  Dir.chdir(folder) do
    formula = Gander.new
    formula.install
    counts = formula.folders.transform_values { |target| target.installed.length }
    abort "installed: #{counts}" unless counts.length == 5 && counts[:man1] > 40
  end
end
